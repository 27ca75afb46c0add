"""Tables, figures and HTML reports made from run folders."""
