"""SkillSight for LlamaIndex."""
