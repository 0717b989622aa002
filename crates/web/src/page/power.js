// power
