// jobs
