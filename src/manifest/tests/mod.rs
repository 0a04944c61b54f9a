//! Tests of the room as its users see it: files in, workloads or sentences out.

use super::*;

mod fields;

mod files;

mod health;

mod round_trip;

mod table;

/// A workload with `spec` lines, indented by two, behind its image.
fn workload(spec: &str) -> String {
    format!(
        "apiVersion: bargee/v1\nkind: Workload\nmetadata:\n  name: web\nspec:\n  image: a\n{spec}"
    )
}

fn parse_files(files: &[(&str, &str)]) -> Result<Vec<Declared>, Vec<String>> {
    let files: Vec<(String, String)> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    parse(&files).map_err(|problems| problems.iter().map(Problem::to_string).collect())
}

/// The one workload of `text`.
#[track_caller]
fn accepted(text: &str) -> Declared {
    let mut workloads = parse_files(&[("f.yaml", text)]).unwrap();
    assert_eq!(workloads.len(), 1);
    workloads.remove(0)
}

/// What is said of `text`, in file `f.yaml`.
#[track_caller]
fn refused(text: &str, problems: &[&str]) {
    let found = parse_files(&[("f.yaml", text)]).unwrap_err();
    assert_eq!(found, problems);
}

/// What is said of each `spec`, whose first line is line 7.
#[track_caller]
fn each_refused(cases: &[(&str, &str)]) {
    for (spec, problem) in cases {
        refused(&workload(spec), &[&format!("f.yaml:{problem}")]);
    }
}
