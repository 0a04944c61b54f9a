//! The body of an apply: read within its bound, then taken apart into files.

use std::io::Read;

use super::backend::ManifestFile;
use super::reply::{ApiError, Code};
use super::wire;
use crate::domain::declared::Problem;
use crate::limits::BODY_BYTES;

/// What a body that is one file is called in errors.
const RAW_NAME: &str = "request body";

/// The refusal of a body above the bound.
pub fn too_large() -> ApiError {
    ApiError::new(Code::TooLarge, format!("the body is larger than {BODY_BYTES} bytes"))
}

/// Reads a body whose length was declared or, in pieces, was not.
///
/// # Errors
/// It is too large, or it ends before its declared length.
pub fn read(reader: &mut dyn Read, declared: Option<usize>) -> Result<Vec<u8>, ApiError> {
    if declared.is_some_and(|length| length > BODY_BYTES) {
        return Err(too_large());
    }
    let mut body = Vec::with_capacity(declared.unwrap_or(0));
    let bound = BODY_BYTES as u64 + 1;
    let cut = |_| ApiError::invalid("the body broke off");
    reader.take(bound).read_to_end(&mut body).map_err(cut)?;
    if body.len() > BODY_BYTES {
        return Err(too_large());
    }
    // The server takes a connection that broke for the end of the body.
    if declared.is_some_and(|length| length != body.len()) {
        return Err(ApiError::invalid("the body broke off"));
    }
    Ok(body)
}

/// The files in a body: `{"files": [...]}` where JSON was declared and the object has that key,
/// else the body is one file.
///
/// # Errors
/// The object has another shape, there is no file in it, or the one file is not text.
pub fn files(body: Vec<u8>, content_type: &str) -> Result<Vec<ManifestFile>, ApiError> {
    if is_json(content_type)
        && let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(&body)
        && object.contains_key("files")
    {
        return listed(&body);
    }
    let text = String::from_utf8(body).map_err(|error| not_text(&error))?;
    Ok(vec![ManifestFile { name: RAW_NAME.to_owned(), text }])
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

fn listed(body: &[u8]) -> Result<Vec<ManifestFile>, ApiError> {
    let body: wire::ApplyBody = serde_json::from_slice(body).map_err(|error| {
        let shape = r#"{"files": [{"name": "...", "text": "..."}]}"#;
        ApiError::invalid(format!("the body must be {shape}: {error}"))
    })?;
    if body.files.is_empty() {
        return Err(ApiError::invalid("the body names no file"));
    }
    let file = |file: wire::ApplyFile| ManifestFile { name: file.name, text: file.text };
    Ok(body.files.into_iter().map(file).collect())
}

fn not_text(error: &std::string::FromUtf8Error) -> ApiError {
    let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
    ApiError::problems(&[Problem {
        file: RAW_NAME.to_owned(),
        line,
        field: String::new(),
        message: "is not UTF-8 text".to_owned(),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_status(body: &[u8], declared: Option<usize>) -> Result<usize, u16> {
        read(&mut &body[..], declared).map(|body| body.len()).map_err(|e| e.code.status())
    }

    #[test]
    fn bodies_are_bounded_declared_or_not() {
        let full = vec![b'x'; BODY_BYTES];
        assert_eq!(read_status(&full, Some(BODY_BYTES)), Ok(BODY_BYTES));
        assert_eq!(read_status(&full, None), Ok(BODY_BYTES));
        assert_eq!(read_status(b"", Some(BODY_BYTES + 1)), Err(413));
        let over = vec![b'x'; BODY_BYTES + 1];
        assert_eq!(read_status(&over, None), Err(413));
        assert_eq!(read_status(b"half", Some(8)), Err(400));
    }

    #[test]
    fn the_shape_decides_what_a_file_is() {
        let names = |body: &str, kind: &str| {
            files(body.as_bytes().to_vec(), kind)
                .map(|files| files.into_iter().map(|f| (f.name, f.text)).collect::<Vec<_>>())
                .map_err(|error| error.code.status())
        };
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let two = r#"{"files":[{"name":"a","text":"1"},{"name":"b","text":"2"}]}"#;
        let json = "application/json; charset=utf-8";
        assert_eq!(names(two, json), Ok(vec![pair("a", "1"), pair("b", "2")]));
        assert_eq!(names(two, "application/yaml"), Ok(vec![pair(RAW_NAME, two)]));
        let manifest = r#"{"kind":"Workload"}"#;
        assert_eq!(names(manifest, json), Ok(vec![pair(RAW_NAME, manifest)]));
        assert_eq!(names("kind: Workload", json), Ok(vec![pair(RAW_NAME, "kind: Workload")]));
        assert_eq!(names(r#"{"files":[]}"#, json), Err(400));
        assert_eq!(names(r#"{"files":[{"name":"a"}]}"#, json), Err(400));
        assert_eq!(names(r#"{"files":[],"prune":true}"#, json), Err(400));
    }

    #[test]
    fn what_is_not_text_is_a_problem_with_its_line() {
        let error = files(b"a: 1\nb: \xff\n".to_vec(), "").unwrap_err();
        assert_eq!(error.code.status(), 422);
        assert_eq!(error.message, "request body:2: is not UTF-8 text");
    }

    #[test]
    fn the_deepest_body_fits_on_the_stack_of_a_thread() {
        for depth in [126, 1_000, BODY_BYTES / 2] {
            let body = format!("{{\"files\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            let answer = move || files(body.into_bytes(), "application/json").map(drop);
            let thread = crate::os::thread::spawn("deep", answer).unwrap();
            let _ = thread.join().expect("no overflow");
        }
    }
}
