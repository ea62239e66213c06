-- A row that is kept as one document has its columns in a view of the artifact's name (`store/views.py`): people query that.
ALTER TABLE environments RENAME TO environment_documents;
ALTER TABLE images RENAME TO image_documents;
ALTER TABLE reproductions RENAME TO reproduction_documents;
ALTER TABLE measurements RENAME TO measurement_documents;
ALTER TABLE published_images RENAME TO published_image_documents;
ALTER TABLE releases RENAME TO release_documents;

ALTER INDEX environments_pkey RENAME TO environment_documents_pkey;
ALTER INDEX images_pkey RENAME TO image_documents_pkey;
ALTER INDEX images_by_repository RENAME TO image_documents_by_repository;
ALTER INDEX reproductions_pkey RENAME TO reproduction_documents_pkey;
ALTER INDEX measurements_pkey RENAME TO measurement_documents_pkey;
ALTER INDEX published_images_pkey RENAME TO published_image_documents_pkey;
ALTER INDEX releases_pkey RENAME TO release_documents_pkey;
