//! Which workload a name means.

use std::sync::Arc;

use bargee::api::select::select;
use bargee::domain::record::Desired;
use bargee::domain::view::View;

use crate::fake::{DB, JOB, WEB, view};

/// A workload whose name could be a piece of another's uid.
const HEX: &str = "33333333-0000-4000-8000-000000000004";

fn meant(name: &str) -> Result<String, u16> {
    let views: Vec<Arc<View>> = [
        view("shop", "web", WEB),
        view("lab", "web", DB),
        view("shop", "job", JOB),
        view("shop", "2222", HEX),
    ]
    .map(Arc::new)
    .to_vec();
    select(&views, name)
        .map(|view| view.declared.key.to_string())
        .map_err(|error| error.code.status())
}

#[test]
fn each_way_to_name_a_workload() {
    let found = [
        (WEB, "shop/web"),
        ("shop/web", "shop/web"),
        ("lab.web", "lab/web"),
        ("job", "shop/job"),
        ("1111", "shop/web"),
        ("2222AAAA", "shop/job"),
        ("11111111-0000", "shop/web"),
        ("22222", "lab/web"),
        // An exact name wins over the uids that begin like it.
        ("2222", "shop/2222"),
    ];
    for (name, key) in found {
        assert_eq!(meant(name).as_deref(), Ok(key), "{name}");
    }
}

#[test]
fn names_that_mean_none_or_many() {
    for name in ["", "111", "we", "WEB", "shop/db", "shop/", "/web", "a/b/c", "1111x", "----"] {
        assert_eq!(meant(name), Err(404), "{name}");
    }
    assert_eq!(meant("web"), Err(409));
}

#[test]
fn one_that_is_being_removed_gives_way_to_the_one_in_its_place() {
    let views = |leaving: &[&str]| {
        let mut views =
            [view("shop", "web", WEB), view("shop", "web", DB), view("lab", "web", JOB)];
        for view in views.iter_mut().filter(|view| leaving.contains(&view.uid.as_str())) {
            view.desired = Desired::Deleted;
        }
        views.map(Arc::new)
    };
    let meant = |leaving: &[&str], name: &str| {
        select(&views(leaving), name)
            .map(|view| view.uid.as_str().to_owned())
            .map_err(|error| error.code.status())
    };
    assert_eq!(meant(&[WEB], "shop/web").as_deref(), Ok(DB));
    assert_eq!(meant(&[WEB], WEB).as_deref(), Ok(WEB));
    // As long as nothing is in its place, it is what is meant.
    assert_eq!(meant(&[JOB], "lab/web").as_deref(), Ok(JOB));
    assert_eq!(meant(&[WEB, DB], "shop/web"), Err(409));
    assert_eq!(meant(&[JOB], "web"), Err(409));
}

#[test]
fn a_piece_of_two_uids_is_ambiguous() {
    let views = [view("a", "x", DB), view("a", "y", JOB)].map(Arc::new);
    let error = select(&views, "2222").unwrap_err();
    assert_eq!(error.code.status(), 409);
    assert_eq!(error.message, format!("'2222' could be any of a/x ({DB}), a/y ({JOB})"));
}
