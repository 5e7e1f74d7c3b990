"""What the owner declares public: columns, constraints, and their YAML form."""
