CREATE TABLE journal (version INTEGER NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE receipts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    candidate_id TEXT NOT NULL,
    policy_digest TEXT NOT NULL,
    namespace TEXT NOT NULL,
    record_key TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    run_id TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (candidate_id, policy_digest)
);
CREATE INDEX receipts_by_record ON receipts (namespace, record_key);
CREATE INDEX receipts_by_run ON receipts (run_id);
CREATE INDEX receipts_by_outcome ON receipts (outcome);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    receipt_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    at TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (receipt_id, candidate_id, kind)
);
CREATE INDEX events_by_kind ON events (kind, receipt_id);
CREATE TABLE extractions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_key TEXT NOT NULL,
    writer_digest TEXT NOT NULL,
    chunk_key TEXT NOT NULL,
    at TEXT NOT NULL,
    run_id TEXT NOT NULL,
    UNIQUE (conversation_key, writer_digest, chunk_key)
);
CREATE TABLE reads (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    extraction INTEGER NOT NULL REFERENCES extractions (seq),
    turn_key TEXT NOT NULL
);
CREATE INDEX reads_by_turn ON reads (turn_key, extraction);
CREATE INDEX reads_by_extraction ON reads (extraction, turn_key);
CREATE TABLE extracted (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    extraction INTEGER NOT NULL REFERENCES extractions (seq),
    candidate_id TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX extracted_by_extraction ON extracted (extraction);
CREATE INDEX extracted_by_candidate ON extracted (candidate_id);
CREATE TRIGGER events_once BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE receipt_id = new.receipt_id
    AND candidate_id = new.candidate_id AND kind = new.kind)
BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER events_of_a_receipt BEFORE INSERT ON events
WHEN new.kind <> 'forgotten' AND NOT EXISTS (SELECT 1 FROM receipts WHERE id = new.receipt_id)
BEGIN SELECT RAISE(ABORT, 'the receipt of this event is not in the log'); END;
CREATE TRIGGER receipts_no_update BEFORE UPDATE ON receipts
BEGIN SELECT RAISE(ABORT, 'receipts are append-only'); END;
CREATE TRIGGER receipts_no_delete BEFORE DELETE ON receipts WHEN NOT (EXISTS (SELECT 1 FROM events AS erasure WHERE erasure.kind = 'forgotten' AND erasure.receipt_id = old.id))
BEGIN SELECT RAISE(ABORT, 'receipts are append-only; use forget'); END;
CREATE TRIGGER receipts_no_replace BEFORE INSERT ON receipts
WHEN EXISTS (SELECT 1 FROM receipts WHERE seq = new.seq)
    OR EXISTS (SELECT 1 FROM receipts WHERE id = new.id
        OR (candidate_id = new.candidate_id AND policy_digest = new.policy_digest))
BEGIN SELECT RAISE(ABORT, 'receipts are append-only; this row is in the log'); END;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events WHEN NOT (old.kind <> 'forgotten' AND EXISTS (SELECT 1 FROM events AS erasure WHERE erasure.kind = 'forgotten' AND erasure.receipt_id = old.receipt_id))
BEGIN SELECT RAISE(ABORT, 'events are append-only; use forget'); END;
CREATE TRIGGER events_no_replace BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE seq = new.seq)
    OR EXISTS (SELECT 1 FROM events WHERE 0)
BEGIN SELECT RAISE(ABORT, 'events are append-only; this row is in the log'); END;
CREATE TRIGGER extractions_no_update BEFORE UPDATE ON extractions
BEGIN SELECT RAISE(ABORT, 'extractions are append-only'); END;
CREATE TRIGGER extractions_no_delete BEFORE DELETE ON extractions WHEN NOT (0)
BEGIN SELECT RAISE(ABORT, 'extractions are append-only; use forget'); END;
CREATE TRIGGER extractions_no_replace BEFORE INSERT ON extractions
WHEN EXISTS (SELECT 1 FROM extractions WHERE seq = new.seq)
    OR EXISTS (SELECT 1 FROM extractions WHERE conversation_key = new.conversation_key
        AND writer_digest = new.writer_digest AND chunk_key = new.chunk_key)
BEGIN SELECT RAISE(ABORT, 'extractions are append-only; this row is in the log'); END;
CREATE TRIGGER reads_no_update BEFORE UPDATE ON reads
BEGIN SELECT RAISE(ABORT, 'reads are append-only'); END;
CREATE TRIGGER reads_no_delete BEFORE DELETE ON reads WHEN NOT (0)
BEGIN SELECT RAISE(ABORT, 'reads are append-only; use forget'); END;
CREATE TRIGGER reads_no_replace BEFORE INSERT ON reads
WHEN EXISTS (SELECT 1 FROM reads WHERE seq = new.seq)
    OR EXISTS (SELECT 1 FROM reads WHERE 0)
BEGIN SELECT RAISE(ABORT, 'reads are append-only; this row is in the log'); END;
CREATE TRIGGER extracted_no_update BEFORE UPDATE ON extracted
BEGIN SELECT RAISE(ABORT, 'extracted are append-only'); END;
CREATE TRIGGER extracted_no_delete BEFORE DELETE ON extracted WHEN NOT (EXISTS (SELECT 1 FROM events AS erasure WHERE erasure.kind = 'forgotten' AND erasure.candidate_id = old.candidate_id))
BEGIN SELECT RAISE(ABORT, 'extracted are append-only; use forget'); END;
CREATE TRIGGER extracted_no_replace BEFORE INSERT ON extracted
WHEN EXISTS (SELECT 1 FROM extracted WHERE seq = new.seq)
    OR EXISTS (SELECT 1 FROM extracted WHERE 0)
BEGIN SELECT RAISE(ABORT, 'extracted are append-only; this row is in the log'); END;
INSERT INTO journal VALUES (1, '2026-01-01T00:00:00+00:00');
