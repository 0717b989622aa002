use super::*;

#[test]
fn the_plug_in_is_filled_in() {
    let mut site = Site::new(Mode::Admit);
    site.watts = 4000;
    site.partitions = vec!["main".to_owned(), "gpu-1".to_owned()];
    site.app_watts.insert("lulesh".to_owned(), 150);
    site.operators = vec![977];
    assert_eq!(site.mistake(), None);
    let text = job_submit(&site);
    assert!(!text.contains('@') || !text.contains("@MODE@"), "{text}");
    assert!(text.contains("local PARTITIONS = { [\"main\"] = true, [\"gpu-1\"] = true }"));
    assert!(text.contains("local APP_WATTS = { [\"lulesh\"] = 150 }"));
    assert!(text.contains("[0] = true, [977] = true"));
    assert!(text.contains("local ALL = false"));
    for key in ["@OFF@", "@ALL@", "@NODE_WATTS@", "@NODE_CPUS@", "@OPERATORS@", "@WAIT@"] {
        assert!(!text.contains(key), "{key}");
    }
}

#[test]
fn names_that_would_be_lua_are_refused() {
    let mut site = Site::new(Mode::Steer);
    assert_eq!(site.mistake(), None);
    site.partitions = vec!["main\"] = os.execute(\"x\")".to_owned()];
    assert!(site.mistake().unwrap().contains("cannot be the name"));
    let site = Site { off_file: "/etc/it's".into(), ..Site::new(Mode::Steer) };
    assert!(site.mistake().unwrap().contains("/etc/it's"));
    assert!(Site::new(Mode::Admit).mistake().unwrap().contains("feed"));
}

#[test]
fn lines_and_units_follow_the_mode() {
    let version: Version = "26.05.3".parse().unwrap();
    let lines = |mode| {
        let site = Site { watts: 4000, ..Site::new(mode) };
        conf_lines(&site, version, Path::new("/p"), Path::new("/e"))
    };
    assert!(!lines(Mode::Watch).contains("JobSubmitPlugins"));
    assert!(
        lines(Mode::Steer)
            .contains("JobSubmitPlugins=lua\nPrologFlags=Alloc\nProlog=/p\nEpilog=/e\n")
    );
    assert!(lines(Mode::Admit).contains("Licenses=power:4000\n"));
    assert!(lines(Mode::Admit).contains("resources.yaml"));
    assert_eq!(drop_ins(&Site::new(Mode::Watch)).len(), 1);
    assert!(prolog(&Site::new(Mode::Steer)).contains("'/usr/bin/busbar' agent status"));
    for mode in [Mode::Watch, Mode::Steer, Mode::Admit] {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    assert!("other".parse::<Mode>().is_err());
}

#[test]
fn the_plug_in_is_switched_off_and_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("busbar.off");
    switch_off(&file).unwrap();
    assert!(file.exists());
    switch_on(&file).unwrap();
    switch_on(&file).unwrap();
    assert!(!file.exists());
}
