//! One mutant of a text: a few small changes, each of a kind that people, editors, crashes and disks make.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, RngCore as _};

/// What readers of YAML, JSON, Corefiles and hosts files stumble over.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"'",
    b":",
    b": ",
    b",",
    b"- ",
    b"---\n",
    b"...\n",
    b"#",
    b"# blueprint:begin\n",
    b"# blueprint:end\n",
    b"# blueprint:begin",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b" ",
    b"\0",
    b"&a ",
    b"*a",
    b"<<: *a\n",
    b"!!binary ",
    b"| \n",
    b">-\n",
    b"? ",
    b"~",
    b"null",
    b"true",
    b"yes",
    b"0",
    b"-1",
    b"0755",
    b"1e999",
    b"18446744073709551616",
    b".inf",
    b".nan",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"%",
    b"@",
    b"`",
    b".:53 {\n",
    b"import x\n",
    b"kubernetes cluster.local {\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xe2\x80\xa8",
    b"\xf0\x9f\x90\xbb",
    b"..",
    b"/",
    b"../",
    b"==",
    b"=",
];

/// `parent` with one to four changes; pieces of `others` may be spliced in.
pub fn mutant(parent: &[u8], others: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
    let mut text = parent.to_vec();
    for _ in 0..random.random_range(1..=4) {
        change(&mut text, others, random);
    }
    text
}

fn change(text: &mut Vec<u8>, others: &[Vec<u8>], random: &mut StdRng) {
    match random.random_range(0..11) {
        // A write that was cut off.
        0 => text.truncate(place(text, random)),
        // A flipped bit.
        1 => {
            if let Some(byte) = any_byte(text, random) {
                *byte ^= 1 << random.random_range(0..8);
            }
        }
        2 => {
            let with = random.random::<u8>();
            if let Some(byte) = any_byte(text, random) {
                *byte = with;
            }
        }
        // A hole, as some file systems leave it after a crash.
        3 => {
            let (from, to) = range(text, 64, random);
            text[from..to].fill(0);
        }
        4 => {
            let (from, to) = range(text, 64, random);
            text.drain(from..to);
        }
        5 => {
            let (from, to) = range(text, 64, random);
            let piece = text[from..to].to_vec();
            insert(text, &piece, random);
        }
        6 => {
            let mut piece = vec![0; random.random_range(1..9)];
            random.fill_bytes(&mut piece);
            insert(text, &piece, random);
        }
        7 | 8 => {
            let token = TOKENS.choose(random).copied().unwrap_or_default();
            let times = if random.random_ratio(1, 8) {
                random.random_range(2..300)
            } else {
                1
            };
            insert(text, &token.repeat(times), random);
        }
        9 => {
            if let Some(other) = others.choose(random) {
                let (from, to) = range(other, 256, random);
                insert(text, &other[from..to], random);
            }
        }
        _ => swap_or_repeat_lines(text, random),
    }
}

fn swap_or_repeat_lines(text: &mut Vec<u8>, random: &mut StdRng) {
    let mut lines: Vec<Vec<u8>> = text
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if lines.is_empty() {
        return;
    }
    let (one, other) = (
        random.random_range(0..lines.len()),
        random.random_range(0..lines.len()),
    );
    if random.random() {
        lines.swap(one, other);
    } else {
        let line = lines[one].clone();
        lines.insert(other, line);
    }
    *text = lines.concat();
}

fn any_byte<'a>(text: &'a mut [u8], random: &mut StdRng) -> Option<&'a mut u8> {
    let length = text.len();
    (length > 0).then(|| &mut text[random.random_range(0..length)])
}

/// Between two bytes, or at an end.
fn place(text: &[u8], random: &mut StdRng) -> usize {
    random.random_range(0..=text.len())
}

fn range(text: &[u8], most: usize, random: &mut StdRng) -> (usize, usize) {
    let from = place(text, random);
    let to = from + random.random_range(0..=most.min(text.len() - from));
    (from, to)
}

fn insert(text: &mut Vec<u8>, piece: &[u8], random: &mut StdRng) {
    let at = place(text, random);
    text.splice(at..at, piece.iter().copied());
}
