//! Tests of writing captures to full disks and existing files.

use super::*;

/// A sink that accepts a limited number of bytes, and fails all later writes as a full disk does.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.bytes.len();
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len().min(room))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Limited {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.bytes.cut(length)
    }
}

#[test]
fn the_capture_on_a_full_disk_is_readable_to_its_end() {
    let mut disk = Limited { bytes: Vec::new(), limit: 200_000 };
    let mut writer = CaptureWriter::new(&mut disk);
    let interface = writer.add_interface("left", &ETHERNET);
    for _ in 0..1_000 {
        record(&mut writer, interface, 0, Direction::Sent, &[5; 1_514]);
    }
    assert!(writer.error().is_some());
    let kept = writer.packets();
    assert_eq!(kept + writer.missing(), 1_000);
    drop(writer);
    assert_eq!(read_all(&disk.bytes).unwrap().len() as u64, kept);
    assert!(kept > 80, "{kept}");
}

#[test]
fn a_capture_names_its_program_and_the_rate_of_its_interfaces() {
    let has =
        |file: &[u8], option: &[u8]| file.windows(option.len()).any(|window| window == option);
    let file = small_capture();
    let rate =
        [&8_u16.to_ne_bytes()[..], &8_u16.to_ne_bytes(), &10_000_000_u64.to_ne_bytes()].concat();
    assert!(has(&file, b"linerate ") && has(&file, &rate));
}

/// A sink that counts writes and bytes, and discards the bytes.
struct Counting<'a>(&'a Cell<(usize, usize)>);

impl Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (writes, written) = self.0.get();
        self.0.set((writes + 1, written + bytes.len()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Counting<'_> {
    fn cut(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn packets_are_buffered_up_to_a_limit() {
    let counted = Cell::new((0, 0));
    let mut writer = CaptureWriter::new(Counting(&counted));
    let interface = writer.add_interface("left", &ETHERNET);
    for number in 1..=1_000 {
        record(&mut writer, interface, 0, Direction::Sent, &[5; 1_514]);
        let (writes, written) = counted.get();
        assert!(number * 1_514 <= written + 65_536);
        assert!(writes * 65_536 <= written);
    }
    drop(writer);
    assert!(counted.get().1 > 1_000 * 1_514);
}

#[test]
fn a_full_disk_is_reported_by_finish() {
    let mut disk = Limited { bytes: Vec::new(), limit: 10 };
    let mut writer = CaptureWriter::new(&mut disk);
    writer.add_interface("left", &ETHERNET);
    assert!(writer.error().is_none());
    assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(disk.bytes.is_empty(), "the partial write is cut off");
}

/// Creates a capture at `path` and drops it before any packet was written.
fn create_and_drop(path: &Path) {
    let mut writer = CaptureWriter::create(path).unwrap();
    writer.add_interface("left", &ETHERNET);
}

#[test]
fn a_capture_without_packets_leaves_files_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let [new, kept, link] = ["new", "kept", "link"].map(|name| folder.path().join(name));
    fs::write(&kept, "of great worth").unwrap();
    symlink("new", &link).unwrap();
    for path in [&new, &kept, &link] {
        create_and_drop(path);
        assert!(!new.exists(), "{}", path.display());
    }
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("new"));
    assert_eq!(fs::read_to_string(&kept).unwrap(), "of great worth");
}

#[test]
fn a_capture_follows_a_symbolic_link_to_a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let [new, link, astray] = ["new", "link", "astray"].map(|name| folder.path().join(name));
    symlink("new", &link).unwrap();
    CaptureWriter::create(&link).unwrap().finish().unwrap();
    assert!(new.exists() && link.is_symlink());
    symlink("nowhere/x", &astray).unwrap();
    assert_eq!(CaptureWriter::create(&astray).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_capture_overwrites_an_existing_file_completely() {
    let folder = tempfile::tempdir().unwrap();
    let [new, longer] = ["new", "longer"].map(|name| folder.path().join(name));
    fs::write(&longer, [0; 100_000]).unwrap();
    for path in [&new, &longer] {
        let mut writer = CaptureWriter::create(path).unwrap();
        let interface = writer.add_interface("left", &ETHERNET);
        record(&mut writer, interface, 0, Direction::Sent, &[5; 60]);
    }
    assert_eq!(fs::read(&new).unwrap(), fs::read(&longer).unwrap());
}

#[test]
fn a_finished_capture_is_valid_without_packets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    CaptureWriter::create(&path).unwrap().finish().unwrap();
    assert_eq!(read_all(&fs::read(&path).unwrap()).unwrap(), Vec::<Vec<u8>>::new());
}
