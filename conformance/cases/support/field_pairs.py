"""Pairs of definitions with equal and with different fields, as written after the name.

The kernel compares fields when a name is registered again, since 6.4, and when an event is deleted
through dynamic_events.
"""

from collections.abc import Mapping

Pairs = Mapping[str, tuple[str, str]]

# Equal, whatever the spacing.
SAME: Pairs = {
    "no-fields": ("", ""),
    "no-fields-space": ("", " "),
    "no-fields-spaces": (" ", "  \t"),
    "identical": (" u32 a; char[20] b", " u32 a; char[20] b"),
    "last-semicolon": (" u32 a", " u32 a;"),
    "first-had-semicolon": (" u32 a;", " u32 a"),
    "double-space": (" u32 a", " u32  a"),
    "tab": (" unsigned int a", " unsigned\tint\ta"),
    "trailing-space": (" u32 a", " u32 a "),
    "newline": (" u32 a; u64 b", " u32 a;\nu64 b\n"),
    "struct": (" struct s a 20; u32 b", " struct s a 20; u32 b"),
    "struct-behind": (" u8 a; struct s b 20; u8 c", " u8 a; struct s b 20; u8 c"),
    "struct-spaces": (" struct s a 20", "  struct  s  a  20"),
    "locations": (" __data_loc char[] a; __rel_loc u32 b", " __data_loc char[] a; __rel_loc u32 b"),
}

# Different: the second does not match the first.
DIFFERENT: Pairs = {
    "type": (" u32 a", " u64 a"),
    "type-alias": (" u32 a", " unsigned int a"),
    "sign": (" u32 a", " s32 a"),
    "name": (" u32 a", " u32 b"),
    "name-case": (" u32 a", " u32 A"),
    "fewer": (" u32 a; u32 b", " u32 a"),
    "more": (" u32 a", " u32 a; u32 b"),
    "order": (" u32 a; u64 b", " u64 b; u32 a"),
    "none-for-some": (" u32 a", ""),
    "some-for-none": ("", " u32 a"),
    "array-notation": (" char[20] a", " char[0x14] a"),
    "location-kind": (" __data_loc char[] a", " __rel_loc char[] a"),
    "struct-tag": (" struct s a 20", " struct t a 20"),
    "last-of-200-letters": (f" u32 {'a' * 199}b", f" u32 {'a' * 199}c"),
    "prefix": (" u32 ab", " u32 a"),
    "longer": (" u32 a", " u32 ab"),
    "space-before-semicolon": (" u32 a", " u32 a ;"),
    "empty-piece": (" u32 a; u32 b", " u32 a;; u32 b"),
}

# Definitions that do not match themselves.
SELF_MISMATCHES = {
    "struct-leading-zero": " struct s a 020",
    "struct-plus": " struct s a +20",
    "struct-no-tag": " struct  a 20",
    "empty-piece": " u32 a;;u32 b",
    "first-semicolon": " ;u32 a",
    "semicolon-alone": " ;",
    "empty-field-name": " u32 ",
    "location-without-type": " __data_loc  a",
    "tab-in-field-name": " u32 a\tb",
    "no-break-space": " u32 à",
}

# Such definitions, and their fields in dynamic_events.
CANONICAL: Pairs = {
    "struct-leading-zero": (" struct s a 020", " struct s a 20"),
    "empty-piece": (" u32 a;;u32 b", " u32 a; u32 b"),
    "first-semicolon": (" ;u32 a", " u32 a"),
    "semicolon-alone": (" ;", ""),
}
