-- A blob goes when nothing refers to it any more, which is looked up by its hash.
CREATE INDEX build_attempts_by_log ON build_attempts (log_sha256);
CREATE INDEX logs_by_hash ON logs (sha256);
CREATE INDEX changes_by_patch ON changes (patch_sha256);
