import type { Guide } from '../shared/guide.ts'
import { HELP, VERSION } from './arguments.ts'
import type { Command, CommandEntry, CommandExample, Operand, Option } from './command.ts'
import { type Io, paint } from './io.ts'

/** `gatehouse --help`: loads no command. */
export function programHelp(entries: readonly CommandEntry[], guide: Guide, io: Io): string {
  return page([
    usage('gatehouse COMMAND [OPTION…]', io),
    paragraph('A reverse proxy that recognises AI agents, and decides what each of them may do.', io),
    section('Commands', entries.map(namedRow), io),
    section(
      'Topics',
      guide.pages.map(({ topic, title, about }) => [topic, about === '' ? title : about]),
      io,
    ),
    section('Options', [HELP, VERSION].map(optionRow), io),
    paragraph('"gatehouse help COMMAND" shows the options of a command.', io),
    paragraph('"gatehouse help TOPIC" shows a page of the manual.', io),
  ])
}

/** `gatehouse COMMAND --help`; `path` is the typed command. */
export function commandHelp(path: string, command: Command, io: Io): string {
  const about = [`${command.summary}.`, ...(command.description ?? [])].map((text) => paragraph(text, io))
  if ('subcommands' in command) {
    return page([
      usage(`${path} SUBCOMMAND [OPTION…]`, io),
      ...about,
      section('Subcommands', command.subcommands.map(namedRow), io),
      section('Options', [optionRow(HELP)], io),
      paragraph(`"${path} SUBCOMMAND --help" tells more about a subcommand.`, io),
    ])
  }
  return page([
    usage([path, '[OPTION…]', ...command.operands.map(operandUsage)].join(' '), io),
    ...about,
    section('Operands', command.operands.map(operandRow), io),
    section('Options', [...command.options, HELP].map(optionRow), io),
    section('Examples', command.examples.map(exampleRow), io),
  ])
}

type Row = readonly [term: string, text: string]

function namedRow({ name, summary }: { readonly name: string; readonly summary: string }): Row {
  return [name, summary]
}

function operandRow({ name, description, choices }: Operand): Row {
  return [name, description + choiceNote(choices)]
}

function optionRow({ name, short, value, description, choices, default: fallback }: Option): Row {
  const dashed = `${short === undefined ? '    ' : `-${short}, `}--${name}`
  const defaultNote = fallback === undefined ? '' : ` (default: ${fallback})`
  return [
    value === undefined ? dashed : `${dashed} ${value}`,
    description + choiceNote(choices) + defaultNote,
  ]
}

function exampleRow({ command, description }: CommandExample): Row {
  return [`gatehouse ${command}`, description]
}

function operandUsage({ name, optional, many }: Operand): string {
  const word = many ? `${name}…` : name
  return optional ? `[${word}]` : word
}

function choiceNote(choices: readonly string[] | undefined): string {
  return choices === undefined ? '' : `: ${choices.join(', ')}`
}

function page(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n')
}

function usage(text: string, io: Io): string {
  return `${paint(io, 'bold', 'Usage:')} ${text}\n`
}

function paragraph(text: string, io: Io): string {
  return `${wrap(text, io.columns).join('\n')}\n`
}

/**
 * Terms on the left, wrapped descriptions on the right. If a term is too long for its column, the description
 * starts below it.
 */
function section(title: string, rows: readonly Row[], io: Io): string {
  if (rows.length === 0) return ''
  const column = Math.min(TERM_COLUMNS_MAX, Math.max(...rows.map(([term]) => term.length))) + GAP.length
  const margin = ' '.repeat(GAP.length + column)
  const lines = rows.flatMap(([term, text]) => {
    const wrapped = wrap(text, io.columns - margin.length).map((line) => margin + line)
    if (term.length + GAP.length > column) return [GAP + term, ...wrapped]
    return [GAP + term.padEnd(column) + wrapped.join('\n').trimStart()]
  })
  return [paint(io, 'bold', `${title}:`), ...lines, ''].join('\n')
}

export function wrap(
  text: string,
  width: number,
  widthOf: (text: string) => number = (each) => each.length,
): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > Math.max(width, WRAP_COLUMNS_MIN)) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}

const GAP = '  '
const TERM_COLUMNS_MAX = 24
/** On narrower terminals, the terminal's own line breaks read better. */
const WRAP_COLUMNS_MIN = 24
