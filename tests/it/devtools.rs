//! A real browser, by its own protocol: JSON over a web socket.
//!
//! It is written here, over `tungstenite`, because clients for this protocol bring an asynchronous runtime or generated code
//! for all of it, and the tests need a dozen of its commands.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Error, Message, WebSocket};

use crate::patience::{PATIENCE, wait_for};

/// How a page is looked at.
#[derive(Clone, Copy)]
pub(super) struct Looks {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) is_dark: bool,
    pub(super) is_phone: bool,
}

impl Looks {
    pub(super) const DESK: Looks =
        Looks { width: 1280, height: 900, is_dark: false, is_phone: false };
    pub(super) const PHONE: Looks =
        Looks { width: 390, height: 844, is_dark: true, is_phone: true };
}

/// A browser with one page. It ends when this is dropped.
pub(super) struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    calls: u64,
    events: Vec<Value>,
    _profile: TempDir,
}

/// The program: `BUSBAR_CHROMIUM`, or one of the usual names on the path.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("BUSBAR_CHROMIUM") {
        return Some(named.into());
    }
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut files =
        std::env::split_paths(&folders).flat_map(|path| names.map(|name| path.join(name)));
    files.find(|file| file.is_file())
}

impl Browser {
    pub(super) fn start() -> Self {
        let program = program().expect("Chromium, in the path or in BUSBAR_CHROMIUM");
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--hide-scrollbars", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let address = profile.path().join("DevToolsActivePort");
        let (port, path) = wait_for("the browser to start", || {
            assert!(process.try_wait().unwrap().is_none(), "the browser ended");
            let text = fs::read_to_string(&address).ok()?;
            let (port, path) = text.split_once('\n')?;
            path.starts_with('/').then(|| (port.to_owned(), path.trim().to_owned()))
        });
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let (socket, _) =
            tungstenite::client(format!("ws://127.0.0.1:{port}{path}"), stream).unwrap();
        socket.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        let mut browser = Browser {
            process,
            socket,
            session: None,
            calls: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Asks the browser for something and waits for the answer; what else it says is kept.
    pub(super) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let read = match self.socket.read() {
                // A signal came first; there is no answer yet.
                Err(Error::Io(error)) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.unwrap(),
            };
            let Message::Text(text) = read else { continue };
            let mut answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// What an expression in the page comes to.
    pub(super) fn evaluate(&mut self, expression: &str) -> Value {
        let mut answer = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression in the page is true.
    pub(super) fn wait_until(&mut self, expression: &str) {
        wait_for(expression, || (self.evaluate(expression) == true).then_some(()));
    }

    /// Opens a file and waits until all its charts are drawn. How many milliseconds that took.
    pub(super) fn open(&mut self, file: &Path, looks: Looks) -> u64 {
        self.look(looks);
        self.visit(&format!("file://{}", file.display()))
    }

    /// How the pages are looked at from now on.
    pub(super) fn look(&mut self, looks: Looks) {
        let Looks { width, height, is_dark, is_phone } = looks;
        let sharpness = if is_phone { 2 } else { 1 };
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": sharpness,
                    "mobile": is_phone }),
        );
        self.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": is_phone }));
        let scheme = if is_dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// Opens an address and waits until all its charts are drawn. How many milliseconds that took.
    pub(super) fn visit(&mut self, address: &str) -> u64 {
        self.call("Page.navigate", json!({ "url": address }));
        self.wait_until(
            "document.documentElement?.dataset.ready !== undefined \
             || document.getElementById('trouble')?.hidden === false",
        );
        let ready = self.evaluate("Number(document.documentElement.dataset.ready)");
        ready.as_u64().unwrap_or_else(|| panic!("no charts: {:?}", self.complaints()))
    }

    pub(super) fn click(&mut self, selector: &str) {
        self.evaluate(&format!("document.querySelector('{selector}').click()"));
    }

    /// Chooses from a list, as a reader would.
    pub(super) fn choose(&mut self, selector: &str, value: &str) {
        self.evaluate(&format!(
            "{{ const list = document.querySelector('{selector}'); list.value = '{value}'; \
             list.dispatchEvent(new Event('change', {{ bubbles: true }})); }}"
        ));
    }

    /// Writes into a field, as a reader would.
    #[cfg(feature = "web")]
    pub(super) fn write(&mut self, selector: &str, text: &str) {
        let text = json!(text);
        self.evaluate(&format!(
            "{{ const field = document.querySelector('{selector}'); field.value = {text}; \
             field.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
        ));
    }

    /// Presses a key and lets it go.
    #[cfg(feature = "web")]
    pub(super) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let code = match key {
                "Tab" => 9,
                "Enter" => 13,
                "Escape" => 27,
                "ArrowRight" => 39,
                other => panic!("no code for {other}"),
            };
            let text = if key == "Enter" && kind == "keyDown" { "\r" } else { "" };
            let key = json!({ "type": kind, "key": key, "code": key, "text": text,
                              "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", key);
        }
    }

    /// Moves, presses or releases the mouse.
    pub(super) fn mouse(&mut self, what: &str, (x, y): (f64, f64), is_pressed: bool) {
        let button = if is_pressed || what == "mouseReleased" { "left" } else { "none" };
        self.call(
            "Input.dispatchMouseEvent",
            json!({ "type": what, "x": x, "y": y, "button": button,
                    "buttons": u8::from(is_pressed), "clickCount": 1 }),
        );
    }

    /// Two clicks at a place, quickly.
    pub(super) fn double_click(&mut self, (x, y): (f64, f64)) {
        self.mouse("mouseMoved", (x, y), false);
        for count in [1, 2] {
            for (what, buttons) in [("mousePressed", 1), ("mouseReleased", 0)] {
                self.call(
                    "Input.dispatchMouseEvent",
                    json!({ "type": what, "x": x, "y": y, "button": "left",
                            "buttons": buttons, "clickCount": count }),
                );
            }
        }
    }

    /// Touches a place with a finger.
    pub(super) fn tap(&mut self, at: (f64, f64)) {
        self.swipe(at, at);
    }

    /// Draws a finger from one place to another.
    pub(super) fn swipe(&mut self, from: (f64, f64), to: (f64, f64)) {
        let mut touch = |what: &str, place: Option<(f64, f64)>| {
            let points: Vec<Value> = place.iter().map(|(x, y)| json!({ "x": x, "y": y })).collect();
            self.call("Input.dispatchTouchEvent", json!({ "type": what, "touchPoints": points }));
        };
        touch("touchStart", Some(from));
        if to != from {
            touch("touchMove", Some(((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0)));
            touch("touchMove", Some(to));
        }
        touch("touchEnd", None);
    }

    /// Errors and warnings on the console, and everything that was fetched beside the file itself.
    pub(super) fn complaints(&self) -> Vec<String> {
        self.complaints_about(&["file:", "data:", "blob:"])
    }

    /// Errors and warnings on the console, and everything that was fetched from elsewhere than these places.
    pub(super) fn complaints_about(&self, places: &[&str]) -> Vec<String> {
        let is_wrong = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Log.entryAdded") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning"].contains(&event["params"]["type"].as_str().unwrap_or(""))
            }
            Some("Network.requestWillBeSent") => {
                let address = event["params"]["request"]["url"].as_str().unwrap_or("");
                !places.iter().any(|place| address.starts_with(place))
            }
            _ => false,
        };
        self.events.iter().filter(is_wrong).map(Value::to_string).collect()
    }

    /// The page as a picture, into the folder that `BUSBAR_SCREENSHOTS` names, if it does.
    pub(super) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("BUSBAR_SCREENSHOTS") else { return };
        let whole = self.part("[0, document.documentElement.scrollHeight]");
        fs::create_dir_all(&folder).unwrap();
        fs::write(Path::new(&folder).join(name), whole).unwrap();
    }

    /// A part of the page as a PNG, as wide as the page. The expression gives its top and its bottom.
    pub(super) fn part(&mut self, rows: &str) -> Vec<u8> {
        let width = self.evaluate("innerWidth");
        let rows = self.evaluate(rows);
        let [top, bottom] = [0, 1].map(|end| rows[end].as_f64().unwrap());
        let clip = json!({ "x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1 });
        let answer = self.call(
            "Page.captureScreenshot",
            json!({ "format": "png", "captureBeyondViewport": true, "clip": clip }),
        );
        STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where the plot of a chart is on the screen.
pub(super) struct Plot([f64; 4]);

impl Plot {
    /// The plot of a chart, which is scrolled to; scrolling hides what was told before.
    pub(super) fn of(browser: &mut Browser, chart: &str) -> Self {
        let place = browser.evaluate(&format!(
            "(async () => {{ const chart = document.getElementById('{chart}'); chart.scrollIntoView({{ behavior: 'instant', block: 'center' }}); \
             await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))); \
             const box = chart.getBoundingClientRect(), {{ area }} = chart.drawn; \
             return [box.left + area.left, box.top + area.top, area.width, area.height]; }})()"
        ));
        Plot([0, 1, 2, 3].map(|part| place[part].as_f64().unwrap()))
    }

    /// A place in it, by shares of its width and height.
    pub(super) fn at(&self, (across, down): (f64, f64)) -> (f64, f64) {
        let Plot([left, top, width, height]) = self;
        (left + across * width, top + down * height)
    }

    /// Drags from one place to another.
    pub(super) fn drag(&self, browser: &mut Browser, from: (f64, f64), to: (f64, f64)) {
        browser.mouse("mouseMoved", self.at(from), false);
        browser.mouse("mousePressed", self.at(from), true);
        for step in [0.3, 0.7, 1.0] {
            let part = |from: f64, to: f64| from + step * (to - from);
            browser.mouse("mouseMoved", self.at((part(from.0, to.0), part(from.1, to.1))), true);
        }
        browser.mouse("mouseReleased", self.at(to), false);
    }
}
