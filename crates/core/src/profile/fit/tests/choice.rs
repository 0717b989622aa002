//! Which rows a model is trained on, and how many.

use super::*;

#[test]
fn random_rows_are_as_many_as_asked_for_and_differ_by_seed() {
    let rows: Vec<Row> = cab::configurations().map(known).collect();
    let random =
        |percent, seed| choose(&rows, &Training::Random { share: Share::percent(percent), seed });
    assert_eq!(random(10, 1), random(10, 1));
    assert_ne!(random(10, 1), random(10, 2));
    for (percent, count) in [(0, 0), (1, 4), (10, 38), (100, 375), (250, 375)] {
        let indices = random(percent, 3);
        assert_eq!(indices.len(), count);
        assert!(indices.is_sorted_by(|a, b| a < b), "ascending, each once");
        let designed = choose(&rows, &Training::Designed { share: Share::percent(percent) });
        assert_eq!(designed.len(), count);
        assert!(designed.is_sorted_by(|a, b| a < b), "ascending, each once");
    }
    // Each row is chosen in a tenth of all draws: 100 of 1000, with a standard error of 10.
    let mut times = [0; 375];
    for seed in 0..1000 {
        random(10, seed).into_iter().for_each(|index| times[index] += 1);
    }
    assert!(times.iter().all(|count| (55..150).contains(count)), "{times:?}");
}

#[test]
fn applications_are_trained_on_rows_of_their_own() {
    let rows: Vec<Row> = cab::configurations().map(known).collect();
    let trained_on = |application: &str, seed| {
        let profile = Profile { application: application.to_owned(), rows: rows.clone() };
        let training = Training::Random { share: TENTH, seed };
        train(&profile, &training).unwrap().trained_on().to_vec()
    };
    assert_eq!(trained_on("SP-MZ", 1), trained_on("SP-MZ", 1));
    assert_ne!(trained_on("SP-MZ", 1), trained_on("SP-MZ", 2));
    assert_ne!(trained_on("SP-MZ", 1), trained_on("LU-MZ", 1));
}

#[test]
fn a_tenth_may_be_too_few_and_then_more_are_taken() {
    let few = cab::configurations().step_by(9).map(known).collect::<Vec<_>>();
    let profile = Profile { application: "few".to_owned(), rows: few };
    assert_eq!(profile.rows.len(), 42);
    for training in
        [Training::Random { share: TENTH, seed: 1 }, Training::Designed { share: TENTH }]
    {
        let error = train(&profile, &training).unwrap_err();
        assert_eq!(
            error.to_string(),
            "few: 5 measured rows are too few for a model of 10 coefficients; give at least 11"
        );
        let model = train_on_enough(&profile, &training, 0).unwrap();
        assert_eq!(model.coefficients(), 10, "nothing that varies is left out");
        assert!((11..42).contains(&model.trained_on().len()), "{training:?}");
    }
    // As many as asked for, where these are enough; all, where it needs all.
    let half = Training::Designed { share: Share::percent(50) };
    assert_eq!(train_on_enough(&profile, &half, 0), train(&profile, &half));
    let alike = Profile { rows: profile.rows[..1].to_vec(), ..profile };
    let error = train_on_enough(&alike, &half, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "few: 1 measured row is too few for a model of 1 coefficient; give at least 2"
    );
}

#[test]
fn designed_rows_are_spread_out() {
    let mut rows: Vec<Row> = cab::configurations().map(known).collect();
    let designed = |rows: &[Row], percent| -> Vec<Configuration> {
        let training = Training::Designed { share: Share::percent(percent) };
        chosen(rows, training).iter().map(|row| row.configuration).collect()
    };
    let corners = [8, 64].into_iter().flat_map(|nodes| {
        [8, 16]
            .into_iter()
            .flat_map(move |cores| [51, 115].map(|cap| configuration(nodes, cores, cap)))
    });
    let tenth = designed(&rows, 10);
    for corner in corners {
        assert!(tenth.contains(&corner), "{corner:?}");
    }
    // The middle, on a logarithmic scale, of all and of two faces.
    for middle in [(24, 12, 80), (8, 12, 80), (64, 12, 80)] {
        assert!(tenth.contains(&configuration(middle.0, middle.1, middle.2)), "{middle:?}");
    }
    // The order of the rows does not matter, and neither do their figures.
    let mut reversed: Vec<Row> = rows.iter().rev().copied().collect();
    reversed.iter_mut().for_each(|row| row.time = Span::from_secs(1));
    let mut again = designed(&reversed, 10);
    again.sort_unstable();
    assert_eq!(again, tenth);
    // What was not measured is not chosen.
    rows[0].origin = Origin::Predicted;
    assert!(!designed(&rows, 99).contains(&rows[0].configuration));
}
