import type { Io } from './io.ts'

/** 0: success. 1: found a problem. 2: wrong usage. 70 (EX_SOFTWARE of sysexits): a bug in Gatehouse. */
export type ExitCode = 0 | 1 | 2 | 70

/** An entry of the command table: enough for `gatehouse --help`. The command itself is loaded on demand. */
export interface CommandEntry {
  readonly name: string
  readonly summary: string
  load(): Promise<Command>
}

export type Command = CommandAction | Group

/** A command that can run. Help, completion and argument checks are derived from this value. */
export interface CommandAction {
  readonly name: string
  /** One line, without a full stop. */
  readonly summary: string
  /** Paragraphs for the command's help, one string each; wrapped to the terminal's width. */
  readonly description?: readonly string[]
  readonly operands: readonly Operand[]
  readonly options: readonly Option[]
  readonly examples: readonly CommandExample[]
  run(given: Arguments, io: Io): Promise<ExitCode>
}

/** A command with subcommands only: `gatehouse NAME SUBCOMMAND`. */
export interface Group {
  readonly name: string
  readonly summary: string
  readonly description?: readonly string[]
  readonly subcommands: readonly CommandAction[]
}

/** An argument after the options. Required, unless `optional`; only the last one may be `many`. */
export interface Operand {
  /** Upper case. A shell completes FILE and DIRECTORY with files. */
  readonly name: string
  readonly description: string
  readonly optional?: true
  readonly many?: true
  readonly choices?: readonly string[]
  /** What a shell offers where the command itself checks the value. */
  readonly offers?: readonly string[]
}

/** A switch, unless it has a `value`. */
export interface Option {
  /** Without its dashes: `json` is `--json`. */
  readonly name: string
  readonly short?: string
  /** The placeholder for the value in help, upper case. A shell completes FILE and DIRECTORY with files. */
  readonly value?: string
  readonly description: string
  readonly choices?: readonly string[]
  readonly default?: string
}

export interface CommandExample {
  /** Without the program's name: `analyze capture.pcap`. */
  readonly command: string
  readonly description: string
}

/** Arguments, already checked against the Action's options and operands. */
export interface Arguments {
  readonly operands: readonly string[]
  flag(option: string): boolean
  /** The last value given, else the option's default, else null. */
  value(option: string): string | null
  /** Every value given, in order: for an option that may be repeated. */
  values(option: string): readonly string[]
}
