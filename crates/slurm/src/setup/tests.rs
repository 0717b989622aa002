use busbar_needs::needs;

use super::*;

mod plug_in;

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
    for key in [
        "@OFF@",
        "@ALL@",
        "@NODE_WATTS@",
        "@NODE_CPUS@",
        "@NODE_GPUS@",
        "@GPU_WATTS@",
        "@OPERATORS@",
        "@WAIT@",
    ] {
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
    let gpu = |kind: &str| BTreeMap::from([(kind.to_owned(), 300)]);
    let site = Site { watts: 4000, gpu_watts: gpu(""), ..Site::new(Mode::Admit) };
    assert!(site.mistake().unwrap().contains("--node-gpus"));
    assert_eq!(Site { node_gpus: 4, ..site.clone() }.mistake(), None);
    let site = Site { node_gpus: 4, gpu_watts: gpu("a\"100"), ..site };
    assert!(site.mistake().unwrap().contains("cannot be the name"));
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
    assert!(lines(Mode::Steer).contains("#   PartitionName=... Exclusive=NODE\n"));
    // Without slurmdbd, slurmctld does not start with this line.
    assert!(!lines(Mode::Admit).contains("\nAccountingStorageTRES"));
    let tracked = ["gres/gpu", "license/power"].map(str::to_owned).to_vec();
    for tracked in [tracked[..1].to_vec(), tracked.clone()] {
        let site = Site { watts: 4000, tracked: Some(tracked), ..Site::new(Mode::Admit) };
        let lines = conf_lines(&site, version, Path::new("/p"), Path::new("/e"));
        assert!(lines.contains("\nAccountingStorageTRES=gres/gpu,license/power\n"), "{lines}");
    }
    let old = conf_lines(
        &Site { watts: 4000, ..Site::new(Mode::Admit) },
        "22.05.8".parse().unwrap(),
        Path::new("/p"),
        Path::new("/e"),
    );
    assert!(!old.contains("resources.yaml"));
    assert!(old.contains("#   PartitionName=... OverSubscribe=EXCLUSIVE\n"));
    assert_eq!(drop_ins(&Site::new(Mode::Watch)).len(), 1);
    assert!(prolog(&Site::new(Mode::Steer)).contains("'/usr/bin/busbar' agent status"));
    for mode in [Mode::Watch, Mode::Steer, Mode::Admit] {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    assert!("other".parse::<Mode>().is_err());
}

fn two_racks() -> Vec<Layer> {
    let layer = |nodes: &str| Layer { nodes: nodes.parse().unwrap(), watts: 4200 };
    vec![layer("n[1-8]"), layer("n[9-16]")]
}

#[test]
fn layers_are_for_admit_and_have_each_node_once() {
    let mut site = Site { watts: 4200, layers: two_racks(), ..Site::new(Mode::Admit) };
    assert_eq!(site.mistake(), None);
    let text = job_submit(&site);
    assert!(text.contains("local LAYERED = \"watts\""));
    assert!(!text.contains("@LAYERED@"));
    assert!(job_submit(&Site::new(Mode::Steer)).contains("local LAYERED = \"\""));
    site.layers[1].nodes = "n[8-16]".parse().unwrap();
    assert_eq!(site.mistake().unwrap(), "node n8 is in two layers; keep it in one");
    site.licence = RESOURCE.to_owned();
    assert!(site.mistake().unwrap().contains("cannot have the name of the layers, 'watts'"));
    let steered = Site { layers: two_racks(), ..Site::new(Mode::Steer) };
    assert_eq!(steered.mistake().unwrap(), "layers are for mode admit");
}

/// The form of 26.05 is the one that the recorded lab was made with: two racks below all nodes, with 4200 W each.
#[test]
fn the_file_of_layers_is_the_one_that_was_tried() {
    let text = resources(&two_racks(), 4200, "26.05.3".parse().unwrap());
    assert_eq!(
        text.split_once('\n').unwrap().1,
        "- resource: watts\n  mode: MODE_3\n  layers:\n    - nodes:\n        - \"n[1-16]\"\n      count: 4200\n    - nodes:\n        \
         - \"n[1-8]\"\n      count: 4200\n    - nodes:\n        - \"n[9-16]\"\n      count: 4200\n"
    );
}

/// Slurm itself says the same of them.
#[needs(answers)]
#[test]
fn the_file_of_layers_is_what_slurm_made_of_it() {
    let text = resources(&two_racks(), 4200, "26.05.3".parse().unwrap());
    let folder = std::env::var_os("BUSBAR_SLURM_ANSWERS").unwrap();
    let file = Path::new(&folder).join("26.05/scontrol-show-licenses.json");
    let answer = fs::read_to_string(file).unwrap();
    let licences = crate::json::Answer::read("scontrol", &answer).unwrap().licences().unwrap();
    let layers: Vec<_> = licences.iter().filter(|licence| licence.name == RESOURCE).collect();
    assert_eq!(layers.len(), 3);
    for layer in layers {
        let said =
            format!("    - nodes:\n        - \"{}\"\n      count: {}\n", layer.nodes, layer.total);
        assert!(text.contains(&said), "{said}{text}");
    }
}

/// From 26.11 on layers have names, and only the lowest ones name nodes.
#[test]
fn layers_have_names_in_later_versions() {
    let text = resources(&two_racks(), 5000, "26.11.0".parse().unwrap());
    let expected = "    - layer_name: all\n      count: 5000\n    - layer_name: layer1\n      parent_name: all\n      nodes:\n        \
                    - \"n[1-8]\"\n      count: 4200\n    - layer_name: layer2\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_plug_in_is_switched_off_and_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("busbar.off");
    assert_eq!(Switch::read(&file), Switch::On, "where there is none, it is on");
    for switch in [Switch::Off, Switch::Admit, Switch::On, Switch::On] {
        switch.write(&file).unwrap();
        assert_eq!(Switch::read(&file), switch);
    }
    assert!(file.exists());
    // As former versions and people write it.
    fs::write(&file, "").unwrap();
    assert_eq!(Switch::read(&file), Switch::Off);
}
