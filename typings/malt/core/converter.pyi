import enum

class Feature(enum.Enum):
    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"
    @classmethod
    def all(cls) -> tuple[Feature, ...]: ...
    @classmethod
    def all_but(cls, exclude: object) -> tuple[Feature, ...]: ...

class ConversionOptions:
    internal_convert_user_code: bool
    def __init__(
        self,
        recursive: bool = False,
        user_requested: bool = False,
        internal_convert_user_code: bool = True,
        optional_features: object = ...,
    ) -> None: ...

STANDARD_OPTIONS: ConversionOptions

class ProgramContext:
    def __init__(self, options: ConversionOptions) -> None: ...
