-- Attempts at a lock, where the declarations have none, stand beside those at images.
ALTER TABLE build_attempts
    ADD COLUMN made_in text NOT NULL DEFAULT 'images';
