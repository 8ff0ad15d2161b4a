"""SkillSight for LangChain."""
