// Questions to the reader: for a token, and whether a change is meant.

/** Who the token says the reader is; nobody without one. */
let who = { role: "viewer", token: null };

/** Opens a dialog until it is answered. Escape is an answer, too. */
function asked(dialog, form, answered) {
  return new Promise((resolve) => {
    const over = new AbortController(), { signal } = over;
    const end = (answer) => { over.abort(); dialog.close(); resolve(answer); };
    dialog.addEventListener("cancel", (event) => { event.preventDefault(); end(false); }, { signal });
    dialog.querySelector("button[type=button]").addEventListener("click", () => end(false), { signal });
    form.addEventListener("submit", async (event) => { event.preventDefault(); if (await answered()) end(true); }, { signal });
    dialog.showModal();
  });
}

/** Asks for a token until it is a valid one, or nobody wants to give one. */
async function askForToken(why) {
  if (byId("token-dialog").open) return false;
  byId("token-why").textContent = why;
  byId("token-answer").textContent = "";
  const given = await asked(byId("token-dialog"), byId("token-form"), async () => {
    const text = byId("token-text").value.trim();
    try {
      who = await ask("whoami", { using: text });
      token.set(text);
      return true;
    } catch (error) {
      byId("token-answer").textContent = `That did not work: ${error.message}.`;
      byId("token-text").select();
      return false;
    }
  });
  byId("token-text").value = "";
  showWho();
  return given;
}

/** Asks whether something is meant that cannot be undone. */
function areYouSure(title, why, yes) {
  byId("sure-title").textContent = title;
  byId("sure-why").textContent = why;
  byId("sure-yes").textContent = yes;
  return asked(byId("sure-dialog"), byId("sure-form"), async () => true);
}

function showWho() {
  const known = who.token !== null;
  byId("token").textContent = known ? `Forget the token (${who.user_name ? `${who.user_name}, ` : ""}${who.role})` : "Use a token";
  showRights();
}

/** Begins with the token of this tab, if there is one that is still valid. */
async function recallToken() {
  if (token.get()) {
    try {
      who = await ask("whoami");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      token.forget();
    }
  }
  showWho();
}

function forgetToken() {
  token.forget();
  who = { role: "viewer", token: null };
  showWho();
}

/** Asks for a token if there is none. */
async function needToken() {
  if (!token.get() && !await askForToken("Looking is free on the daemon's own computer. Changes need a token.")) throw new Withdrawn();
}

/** Has something changed; asks for a token first if there is none. */
async function change(path, method, body) {
  await needToken();
  return ask(path, { method, body });
}

/** Does what a button or a form is for, and says beside it what came of it. */
async function doing(place, button, work) {
  const say = (text, isWrong) => {
    place.textContent = text;
    place.classList.toggle("wrong", isWrong);
  };
  if (button) button.disabled = true;
  say("…", false);
  try {
    say(await work() ?? "", false);
    return true;
  } catch (error) {
    const isMeant = error instanceof Withdrawn;
    say(isMeant ? "Nothing was changed." : `Nothing was changed: ${error instanceof Refused ? error.message : "the daemon does not answer"}.`, !isMeant);
    if (!isMeant && !(error instanceof Refused)) console.warn(error);
    return false;
  } finally {
    if (button) button.disabled = false;
    showRights();
  }
}
