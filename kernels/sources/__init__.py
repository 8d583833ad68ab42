"""Where kernel sources come from: Debian packages, tarballs, mirrors."""
