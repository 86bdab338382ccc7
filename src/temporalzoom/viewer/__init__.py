"""What people look at: plots of segments, fields and results, and the self-contained HTML report."""
