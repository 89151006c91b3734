import assert from 'node:assert/strict'
import { type ParseArgsOptionDescriptor, parseArgs } from 'node:util'
import { didYouMean } from '../shared/did-you-mean.ts'
import { Fault } from '../shared/fault.ts'
import type { CommandAction, Arguments, Operand, Option } from './command.ts'

/** Fault code for wrong usage: exit code 2, and a pointer to the help. */
export const USAGE = 'USAGE'

/** Built-in options: every command has HELP, the program itself has both. */
export const HELP: Option = { name: 'help', short: 'h', description: 'Show this help' }
export const VERSION: Option = { name: 'version', short: 'V', description: 'Show the version' }

/**
 * Parses the arguments. Returns `help` if they contain `--help`, even if others are invalid. Throws a USAGE
 * Fault.
 */
export function parseArguments(action: CommandAction, argv: readonly string[]): Arguments | 'help' {
  const options = new Map([...action.options, HELP].map((option) => [option.name, option]))
  const tokens = tokenize([...options.values()], argv)
  if (tokens.some((token) => token.kind === 'option' && token.name === HELP.name)) return 'help'

  const values = new Map<string, string[]>()
  const operands: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value)
    if (token.kind !== 'option') continue
    const value = optionValue(options, token)
    values.set(token.name, [...(values.get(token.name) ?? []), value])
  }
  checkOperands(action.operands, operands)
  return new Given(action.options, values, operands)
}

type Token = ReturnType<typeof tokenize>[number]
type OptionToken = Extract<Token, { kind: 'option' }>

/**
 * Not `strict`: parseArgs would stop with its own message, which names neither the nearest option nor the
 * help. The checks of strict mode are done below, token by token.
 */
function tokenize(options: readonly Option[], argv: readonly string[]) {
  const known: Record<string, ParseArgsOptionDescriptor> = {}
  for (const { name, short, value } of options) {
    known[name] = { type: value === undefined ? 'boolean' : 'string', ...(short && { short }) }
  }
  const { tokens } = parseArgs({
    args: argv,
    options: known,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  return tokens
}

/** The value of an option; for a switch, the empty string. */
function optionValue(options: ReadonlyMap<string, Option>, token: OptionToken): string {
  const option = options.get(token.name)
  if (option === undefined) throw unknownOption(token.rawName, [...options.values()])
  if (option.value === undefined) {
    if (token.value !== undefined) throw new Fault(USAGE, `${token.rawName} takes no value`)
    return ''
  }
  // `--keylog --json` is a forgotten file name, not a file called --json.
  const looksLikeOption = !token.inlineValue && token.value !== '-' && token.value?.startsWith('-')
  if (token.value === undefined || looksLikeOption)
    throw new Fault(USAGE, `${token.rawName} needs a value: ${option.value}`)
  checkChoice(option.choices, token.rawName, token.value)
  return token.value
}

export function unknownOption(typed: string, known: readonly Option[]): Fault {
  const names = known.map(({ name }) => `--${name}`)
  return new Fault(USAGE, `unknown option ${typed}${didYouMean(typed, names)}`)
}

function checkOperands(declared: readonly Operand[], given: readonly string[]): void {
  for (const [index, operand] of declared.entries()) {
    const values = operand.many ? given.slice(index) : given.slice(index, index + 1)
    if (values.length === 0 && !operand.optional) throw new Fault(USAGE, `${operand.name} is missing`)
    for (const value of values) checkChoice(operand.choices, operand.name, value)
  }
  const unexpected = declared.at(-1)?.many ? undefined : given[declared.length]
  if (unexpected !== undefined) throw new Fault(USAGE, `unexpected operand "${unexpected}"`)
}

function checkChoice(choices: readonly string[] | undefined, name: string, value: string): void {
  if (choices === undefined || choices.includes(value)) return
  throw new Fault(
    USAGE,
    `${name} is one of ${choices.join(', ')}, not "${value}"${didYouMean(value, choices)}`,
  )
}

class Given implements Arguments {
  readonly operands: readonly string[]
  readonly #options: readonly Option[]
  readonly #values: ReadonlyMap<string, readonly string[]>

  constructor(
    options: readonly Option[],
    values: ReadonlyMap<string, readonly string[]>,
    operands: readonly string[],
  ) {
    this.operands = operands
    this.#options = options
    this.#values = values
  }

  flag(name: string): boolean {
    return this.values(name).length > 0
  }

  value(name: string): string | null {
    return this.values(name).at(-1) ?? this.#option(name).default ?? null
  }

  values(name: string): readonly string[] {
    return this.#values.get(this.#option(name).name) ?? []
  }

  #option(name: string): Option {
    const option = this.#options.find((candidate) => candidate.name === name)
    assert(option !== undefined, `the command asks for an option it did not declare: ${name}`)
    return option
  }
}
