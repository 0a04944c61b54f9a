//! The file system that an open directory is on, by the source of its mount: a device number may be
//! another one after each boot.

use std::fs::{self, File};
use std::os::fd::AsRawFd;

/// The mount source of `file` and the kind of its file system, as `/dev/sda1 (ext4)`; `None`: the
/// kernel does not tell.
pub fn source(file: &File) -> Option<String> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let id = about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    source_of(id, &fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// The source of mount `id` in the text of `mountinfo`: the number comes first, kind and source
/// after a lone dash.
fn source_of(id: &str, mounts: &str) -> Option<String> {
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(id))?;
    let (_, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let (kind, source) = (after.next()?, after.next()?);
    Some(format!("{source} ({kind})"))
}

/// File systems that nobody changes past this kernel, which therefore tells every change.
const TELLING: [&str; 14] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "ubifs", "jffs2", "vfat", "exfat", "tmpfs",
    "overlay", "squashfs", "erofs",
];

/// Whether every change on the file system of this source, as [`source`] has it, is told to those
/// who watch.
pub fn tells_changes(source: &str) -> bool {
    let kind = source.rsplit_once(" (").and_then(|(_, kind)| kind.strip_suffix(')'));
    kind.is_some_and(|kind| TELLING.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
220 22 0:50 /a\\040b /mnt rw,relatime master:2 propagate_from:1 - tmpfs none rw,size=4k
31 22 0:5 / /dev rw - devtmpfs udev rw
";

    #[test]
    fn source_and_kind_stand_after_the_dash() {
        assert_eq!(source_of("22", MOUNTS).as_deref(), Some("/dev/sda1 (ext4)"));
        assert_eq!(source_of("31", MOUNTS).as_deref(), Some("udev (devtmpfs)"));
        assert_eq!(source_of("2", MOUNTS), None);
    }

    #[test]
    fn what_others_may_change_is_not_told() {
        for source in ["/dev/mmcblk0p2 (ext4)", "none (tmpfs)", "overlay (overlay)", "a (b) (xfs)"]
        {
            assert!(tells_changes(source), "{source}");
        }
        for source in ["", "ext4", "nas:/m (nfs4)", "//nas/m (cifs)", "host (9p)", "x (fuse.sshfs)"]
        {
            assert!(!tells_changes(source), "{source}");
        }
    }

    #[test]
    fn a_directory_is_on_something() {
        let directory = tempfile::tempdir().unwrap();
        let found = source(&File::open(directory.path()).unwrap()).unwrap();
        assert!(found.ends_with(')') && found.contains(" ("), "{found}");
        let process = source(&File::open("/proc/self").unwrap()).unwrap();
        assert!(process.ends_with("(proc)"), "{process}");
    }
}
