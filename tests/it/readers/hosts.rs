//! Hosts in arguments: every spelling that a program which fetches may read, under rules that allow and rules that deny.

use std::rc::Rc;

use serde_json::json;

use super::desk::Desk;
use super::paths::policy;
use super::{Door, List};

/// Texts by which some program connects to `evil.com`.
const TO_EVIL: &[&str] = &[
    "http://evil.com/",
    "evil.com",
    "evil.com/x",
    "evil.com:443/x",
    "//evil.com/x",
    "HTTP://EVIL.COM/",
    "hTTps://eViL.cOm",
    "http://evil.com./",
    "http://evil\u{3002}com/",
    "http://\u{ff45}vil.com/",
    "http://ev\til.com/",
    "http://ev\nil.com/",
    " http://evil.com/",
    "\nhttp://evil.com/",
    "http:/evil.com/",
    "http:evil.com",
    "http:///evil.com/",
    "http:\\\\evil.com\\x",
    "https:/\\evil.com",
    "http://evil.com%2e/",
    "http://%65vil.com/",
    "http://ev%69l.com",
    "http://evil%E3%80%82com/",
    "http://ok.com\\@evil.com",
    "http://evil.com\\@ok.com",
    "http://evil.com\\.ok.com",
    "http://ok.com@evil.com/",
    "http://ok.com:80@evil.com/",
    "http://a:b@evil.com/",
    "http://ok.com%40@evil.com",
    "http://ok.com@@evil.com/",
    "http://ok.com:pw@evil.com:8080/",
    "http://evil.com:80/",
    "http://evil.com:0080/",
    "http://evil.com:/",
    "http://evil.com#@ok.com",
    "http://evil.com?@ok.com",
    "http://evil.com/@ok.com",
    "http://evil.com?http://ok.com",
    "ftp://evil.com/x",
    "ws://evil.com/",
    "wss://evil.com",
    "git://evil.com/x.git",
    "ssh://git@evil.com/x",
    "git+https://evil.com/x",
    "svn+ssh://evil.com/x",
    "git@evil.com:x/y.git",
    "http://evil.com ok.com",
    "http://evil.com\0.ok.com",
    "http://evil.com%00.ok.com",
    "http://evil.com:99999/",
    "http://evil.com:x/",
    "http://evil.com\t/",
    "h\nttp://evil.com/",
    "http://evil.com\r\nHost: ok.com",
    "[\"http://evil.com/\"]",
    "{\"url\": \"http://evil.com/\"}",
    "http://evil\u{ad}.com/",
    "http://ev\u{200b}il.com/",
    "http://\u{24d4}vil.com/",
    "http://evil.com\u{ff0f}x",
    "http://evil\u{ff0e}com/",
    "view-source:http://evil.com/",
    "http://ok.com\u{ff20}evil.com/",
    "http://[evil.com]/",
    "https://evil.com\\\\..\\x",
    "blob:http://evil.com/x",
];

/// Texts by which some program connects to `169.254.169.254`.
const TO_METADATA: &[&str] = &[
    "http://169.254.169.254/latest",
    "169.254.169.254",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0xA9.0xFE.0xA9.0xFE/",
    "http://0251.0376.0251.0376/",
    "http://025177524776/",
    "http://169.254.43518/",
    "http://169.16689662/",
    "http://169.254.169.254./",
    "http://0xa9.254.169.254/",
    "http://169.0376.0xa9fe/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[0:0:0:0:0:ffff:a9fe:a9fe]/",
    "http://[::FFFF:169.254.169.254]:80/",
    "http://[0000::ffff:a9fe:a9fe]",
    "http://169\u{3002}254\u{3002}169\u{3002}254/",
    "http://\u{ff11}\u{ff16}\u{ff19}.254.169.254/",
    "http://%31%36%39.254.169.254/",
    "http://ok.com@169.254.169.254/",
    "http://ok.com\\@169.254.169.254/",
    "//169.254.169.254/",
    "http:/169.254.169.254",
    "http://00000251.254.169.254/",
    "http://169.254.0xa9.0376",
    "http://\u{2460}69.254.169.254/",
    "http://169.254.169.254:80/",
    "[\"http://2852039166/\"]",
    "http://0x000000a9fea9fe/",
];

/// Forms that some networks turn into the address.
const ODDLY_TO_METADATA: &[&str] = &[
    "http://[::169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[::ffff:a9fe:a9fe%25eth0]/",
    "http://[::ffff:0:169.254.169.254]/",
];

/// Texts that name `ok.com` and lead elsewhere, or nowhere.
const NOT_TO_OK: &[&str] = &[
    "http://ok.com@evil.com",
    "http://ok.com\\@evil.com",
    "http://evil.com\\@ok.com",
    "http://ok.com:80@evil.com/",
    "http://ok.com.evil.com/",
    "//evil.com/ok.com",
    "http://evil.com/ok.com",
    "http://evil.com?ok.com",
    "http://evil.com#ok.com",
    "http://evil.com#@ok.com",
    "http://evil.com?@ok.com",
    "file://ok.com/etc/passwd",
    "javascript:ok.com",
    "data:ok.com,x",
    "http://ok.com\n@evil.com",
    "http://ok.com evil.com",
    "http://ok.com\t.evil.com",
    "http://ok.com%00.evil.com",
    "http://ok.com\0@evil.com",
    "http://ok%2ecom.evil.com",
    "http://ok\u{3002}com.evil.com",
    "http://ok.com%2eevil.com",
    "http://ok.com\u{ff20}evil.com",
    "[\"http://evil.com\"]",
    "[\"http://ok.com\", \"http://evil.com\"]",
    "{\"url\": \"http://evil.com\"}",
    "http://user@ok.com:pw@evil.com",
    "http://ok.com%40evil.com",
    "http://ok.com:evil.com",
    "http://ok.com:80:80/",
    "http://[ok.com]/",
    "http://\u{f6}k.com/",
    "http://0k.com/",
    "http://evil.com\\.ok.com",
    "http://evil.com/.ok.com",
    "http://evil.com\u{ff0f}.ok.com",
    "http://evil.com\u{2044}.ok.com",
    "http://evil.com%2f.ok.com",
    "http://evil.com%5c.ok.com",
    "http://evil.com%23.ok.com",
    "http://evil.com\0.ok.com",
    "http:ok.com@evil.com",
    "http:///evil.com/ok.com",
    "http:\\\\evil.com\\ok.com",
    "http://ok.com\r\nHost: evil.com",
    "gopher://evil.com/_x",
    "http://ok.com\\evil.com:80@x",
    "\\\\evil.com\\ok.com",
    "jar:http://evil.com!/ok.com",
    "view-source:http://evil.com/#ok.com",
    "",
    " ",
    "http://",
    "ok.com\\@evil.com",
    "evil.com\\@ok.com",
];

/// Texts by which some program connects to the host `bücher.example`.
const TO_BOOKS: &[&str] = &[
    "http://b\u{fc}cher.example/",
    "http://xn--bcher-kva.example/",
    "http://B\u{dc}CHER.example/",
    "http://bu\u{308}cher.example/",
    "http://b%C3%BCcher.example/",
    "http://XN--BCHER-KVA.example./",
    "http://bu%CC%88cher.example",
    "b\u{fc}cher.example",
];

fn add(
    list: &mut List,
    kind: &'static str,
    why: &'static str,
    rule: &str,
    denies: bool,
    texts: &[&str],
) {
    let policy = policy(rule, denies);
    for text in texts {
        for door in [Door::Library, Door::Guard] {
            if list.dice.roll(3) < 2 {
                list.of(kind, why).at(door, policy).call("fetch", json!({ "url": text }));
            }
        }
    }
}

pub(super) fn rows(list: &mut List, desk: &Rc<Desk>) {
    list.on(desk);
    let why = "some program connects to the host that is denied (rule X2)";
    add(
        list,
        "hosts: deny",
        why,
        "[[rule]]\nid = 'r'\ndeny = ['fetch', 'mcp:*/*']\nwhere.url.host = ['evil.com', '*.evil.com']\n",
        true,
        TO_EVIL,
    );
    let metadata =
        "[[rule]]\nid = 'r'\ndeny = ['fetch', 'mcp:*/*']\nwhere.url.host = '169.254.169.254'\n";
    add(list, "hosts: deny an address", why, metadata, true, TO_METADATA);
    add(list, "hosts: deny an address, translated", why, metadata, true, ODDLY_TO_METADATA);
    let books =
        "[[rule]]\nid = 'r'\ndeny = ['fetch', 'mcp:*/*']\nwhere.url.host = 'b\u{fc}cher.example'\n";
    add(list, "hosts: deny a name in another script", why, books, true, TO_BOOKS);
    let why = "some program connects to another host than the one that is allowed (rule X2)";
    for (kind, rule) in [
        (
            "hosts: allow",
            "[[rule]]\nid = 'r'\nallow = ['fetch', 'mcp:*/*']\nwhere.url.host = 'ok.com'\n",
        ),
        (
            "hosts: allow below",
            "[[rule]]\nid = 'r'\nallow = ['fetch', 'mcp:*/*']\nwhere.url.host = ['ok.com', 'x.ok.com']\n",
        ),
    ] {
        add(list, kind, why, rule, false, NOT_TO_OK);
    }
}
