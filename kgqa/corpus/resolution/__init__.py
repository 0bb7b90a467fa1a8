"""Resolution of entities: which names in a corpus mean the same entity, and which entity of a knowledge graph."""
