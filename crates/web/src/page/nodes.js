// nodes
