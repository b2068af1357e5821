//! What an ELF file says to the loader, in a file or in the memory of a process (elf(5)).
//!
//! 64 bits, little-endian. Every number may be wrong: anybody may have written a file, and a process may end
//! meanwhile.

use std::fs::File;
use std::os::unix::fs::FileExt;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;

/// Entries of a dynamic section: name and value of 8 bytes each.
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const STRINGS_SIZE: u64 = 10;
const RELOCATIONS: Table = Table { at: 7, size: 8 };
const CALLS: Table = Table { at: 23, size: 2 };

/// The entries that name a table of relocations.
#[derive(Clone, Copy)]
struct Table {
    at: u64,
    size: u64,
}

/// Kinds of relocations with which the loader writes a symbol's address to a slot, for the objects of each
/// machine.
const SLOTS: [(u16, [u32; 2]); 2] = [(62, [6, 7]), (183, [1025, 1026])];

const HEADERS: u64 = 64;
const SECTION: usize = 16 << 10;
const MOST_OF_A_TABLE: u64 = 8 << 20;
const NAME: usize = 256;

/// An object that the loader loads.
pub struct Elf {
    bytes: File,
    place: Place,
    machine: u16,
    segments: Vec<Segment>,
    /// The dynamic section's entries.
    entries: Vec<(u64, u64)>,
}

#[derive(Clone, Copy)]
enum Place {
    /// The ELF file itself: addresses are translated by the segments.
    File,
    /// In memory, at the address at which the loader has put it.
    Memory(u64),
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    length: u64,
}

impl Elf {
    /// Reads a program or a library. `None` if it is not such a file, asks the loader for nothing, or is
    /// damaged.
    pub fn from_file(file: File) -> Option<Elf> {
        Elf::read(file, Place::File)
    }

    /// Reads what a process has loaded at an address, from its /proc/PID/mem.
    pub fn from_process(memory: File, base: u64) -> Option<Elf> {
        Elf::read(memory, Place::Memory(base))
    }

    fn read(bytes: File, place: Place) -> Option<Elf> {
        let mut elf = Elf {
            bytes,
            place,
            machine: 0,
            segments: Vec::new(),
            entries: Vec::new(),
        };
        let start = match place {
            Place::File => 0,
            Place::Memory(base) => base,
        };
        let header: [u8; 64] = elf.raw(start)?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        elf.machine = half(&header, 0x12)?;
        let (at, size, count) = (word(&header, 0x20)?, half(&header, 0x36)?, half(&header, 0x38)?);
        for number in 0..u64::from(count).min(HEADERS) {
            let at = at.checked_add(number.checked_mul(size.into())?)?;
            let header: [u8; 56] = elf.raw(start.checked_add(at)?)?;
            elf.segments.push(Segment {
                kind: quarter(&header, 0)?,
                offset: word(&header, 8)?,
                address: word(&header, 16)?,
                length: word(&header, 32)?,
            });
        }
        let dynamic = elf.segments.iter().find(|segment| segment.kind == DYNAMIC)?;
        let mut section = vec![0; usize::try_from(dynamic.length).ok()?.min(SECTION)];
        elf.fill(dynamic.address, &mut section)?;
        let entries = section
            .chunks_exact(16)
            .map_while(|entry| Some((word(entry, 0)?, word(entry, 8)?)));
        elf.entries = entries.take_while(|(name, _)| *name != 0).collect();
        Some(elf)
    }

    /// The libraries that it asks the loader for.
    pub fn needed(&self) -> Vec<Vec<u8>> {
        let offsets = self.entries.iter().filter(|(name, _)| *name == NEEDED);
        offsets.filter_map(|(_, offset)| self.string(*offset)).collect()
    }

    /// Where the loader has put the address of a function that this object calls, relative to the beginning
    /// of the object: the same in every process. `None` if it does not call the function.
    pub fn slot(&self, function: &[u8]) -> Option<u64> {
        [CALLS, RELOCATIONS]
            .into_iter()
            .find_map(|table| self.slot_in(table, function))
    }

    fn slot_in(&self, table: Table, function: &[u8]) -> Option<u64> {
        let (_, slots) = SLOTS.iter().find(|(machine, _)| *machine == self.machine)?;
        let (table, size, symbols) = (
            self.address(table.at)?,
            self.entry(table.size)?,
            self.address(SYMBOLS)?,
        );
        let relocations = self.bulk(table, size)?;
        let slot = |relocation: &[u8]| {
            let (kind, symbol) = (quarter(relocation, 8)?, quarter(relocation, 12)?);
            let is_slot = slots.contains(&kind);
            is_slot.then_some((u64::from(symbol), word(relocation, 0)?))
        };
        let found: Vec<(u64, u64)> = relocations.chunks_exact(24).filter_map(slot).collect();
        // All symbols are read at once: reading another process's memory is not free, and there may be
        // thousands.
        let last = found.iter().map(|(symbol, _)| *symbol).max()?;
        let symbols = self.bulk(symbols, 24 * (last + 1))?;
        let strings = self.bulk(self.address(STRINGS)?, self.entry(STRINGS_SIZE)?)?;
        let named = |symbol: u64| {
            let at = quarter(&symbols, usize::try_from(24 * symbol).ok()?)?;
            let name = strings.get(usize::try_from(at).ok()?..)?;
            Some(name.starts_with(function) && name.get(function.len()) == Some(&0))
        };
        let found = found.into_iter().find(|(symbol, _)| named(*symbol) == Some(true));
        found.map(|(_, slot)| slot)
    }

    /// Reads a table, but no more of it than a table may have.
    fn bulk(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        let mut table = vec![0; usize::try_from(size.min(MOST_OF_A_TABLE)).ok()?];
        self.fill(address, &mut table)?;
        Some(table)
    }

    fn entry(&self, wanted: u64) -> Option<u64> {
        let found = self.entries.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| *value)
    }

    /// An entry that is an address, to which the loader adds the address of the object.
    fn address(&self, wanted: u64) -> Option<u64> {
        let value = self.entry(wanted)?;
        Some(match self.place {
            Place::Memory(base) if value >= base => value - base,
            Place::Memory(_) | Place::File => value,
        })
    }

    fn string(&self, offset: u64) -> Option<Vec<u8>> {
        let at = self.address(STRINGS)?.checked_add(offset)?;
        let mut name = [0; NAME];
        let read = self.bytes.read_at(&mut name, self.at(at)?).ok()?;
        let name = &name[..read];
        Some(name[..name.iter().position(|byte| *byte == 0)?].to_vec())
    }

    fn fill(&self, address: u64, into: &mut [u8]) -> Option<()> {
        self.bytes.read_exact_at(into, self.at(address)?).ok()
    }

    fn raw<const BYTES: usize>(&self, at: u64) -> Option<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        self.bytes.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    /// Where to read what has this address in the object.
    fn at(&self, address: u64) -> Option<u64> {
        match self.place {
            Place::Memory(base) => base.checked_add(address),
            Place::File => {
                let mut loads = self.segments.iter().filter(|segment| segment.kind == LOAD);
                let holds = |it: &&Segment| address >= it.address && address - it.address < it.length;
                let load = loads.find(holds)?;
                load.offset.checked_add(address - load.address)
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn quarter(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// This very program.
    fn own() -> File {
        File::open(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn an_object_is_read_from_its_file_and_from_memory_alike() {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let program = std::env::current_exe().unwrap();
        let first = maps
            .lines()
            .find(|line| line.ends_with(program.to_str().unwrap()));
        let base = u64::from_str_radix(first.unwrap().split('-').next().unwrap(), 16).unwrap();
        let memory = Elf::from_process(File::open("/proc/self/mem").unwrap(), base).unwrap();
        let file = Elf::from_file(own()).unwrap();
        assert!(file.needed().contains(&b"libc.so.6".to_vec()));
        assert_eq!(memory.needed(), file.needed());
        let own_address = libc::connect as *const () as u64;
        let mut bound = [0; 8];
        memory.fill(memory.slot(b"connect").unwrap(), &mut bound).unwrap();
        assert_eq!(u64::from_le_bytes(bound), own_address);
        assert_eq!(memory.slot(b"no such function"), None);
    }

    #[test]
    fn damaged_objects_never_panic() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("damaged");
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            if let Some(elf) = Elf::from_file(File::open(&path).unwrap()) {
                elf.needed();
                elf.slot(b"connect");
            }
        };
        // A small program.
        let bytes = fs::read("/bin/true").unwrap();
        for end in (0..bytes.len()).step_by(97) {
            read(&bytes[..end]);
        }
        let dynamic = bytes.len() / 2..bytes.len();
        for at in (0..1024).chain(dynamic.step_by(31)) {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                read(&damaged);
            }
        }
    }
}
