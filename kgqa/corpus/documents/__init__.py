"""From files to documents: text with offsets, elements such as tables and links, figures, and chunks."""
