"""The viewer: a page that draws scenes, what answers it, and the server or the file that it is in."""
