import { basename } from 'node:path'
import { didYouMean } from '../shared/did-you-mean.ts'
import { Fault } from '../shared/fault.ts'
import { HELP, USAGE, VERSION } from '../terminal/arguments.ts'
import type { CommandAction, Command, CommandEntry, Operand, Option } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { visible } from '../terminal/table.ts'

/** `gatehouse completion SHELL`: a script generated from the command table. */
export function completion(entries: readonly CommandEntry[]): CommandAction {
  return {
    name: 'completion',
    summary: 'Print the completion script of a shell',
    operands: [
      {
        name: 'SHELL',
        description: 'The shell that will read it (default: the one in $SHELL)',
        choices: [...SCRIPTS.keys()],
        optional: true,
      },
    ],
    options: [],
    examples: [
      {
        command: 'completion bash > ~/.local/share/bash-completion/completions/gatehouse',
        description: 'For bash',
      },
      { command: 'completion zsh > ~/.zfunc/_gatehouse', description: 'For zsh, where ~/.zfunc is in fpath' },
      { command: 'completion fish > ~/.config/fish/completions/gatehouse.fish', description: 'For fish' },
    ],
    run: async (given, io) => {
      const commands = await Promise.all(entries.map((entry) => entry.load()))
      const script = SCRIPTS.get(given.operands[0] ?? ownShell(io))!
      io.stdout.write(script(placesIn(commands)))
      return 0
    },
  }
}

/** The user's shell, by SHELL. Throws a USAGE Fault if there is no script for it. */
function ownShell({ env, stderr }: Io): string {
  const path = env['SHELL'] ?? ''
  const shell = basename(path)
  const names = [...SCRIPTS.keys()]
  const choices = names.join(', ')
  if (path === '') throw new Fault(USAGE, `SHELL is missing; name one of ${choices}`)
  if (!SCRIPTS.has(shell))
    throw new Fault(
      USAGE,
      `completion does not support ${visible(shell)}, the shell in $SHELL${didYouMean(shell, names)}; name one of ${choices}`,
    )
  stderr.write(`completion for ${shell}, the shell in $SHELL\n`)
  return shell
}

/** A position on the command line, reached by typing `path`, and the words that may follow. */
interface Place {
  readonly path: readonly string[]
  readonly words: readonly { readonly name: string; readonly summary: string }[]
  readonly options: readonly Option[]
  readonly operands: readonly Operand[]
}

function placesIn(commands: readonly Command[]): Place[] {
  const start: Place = { path: [], words: commands, options: [HELP, VERSION], operands: [] }
  const others = commands.flatMap((command) => {
    if (!('subcommands' in command)) return [placeOf([command.name], command)]
    const group: Place = { path: [command.name], words: command.subcommands, options: [HELP], operands: [] }
    return [group, ...command.subcommands.map((action) => placeOf([command.name, action.name], action))]
  })
  return [start, ...others]
}

function placeOf(path: readonly string[], { options, operands }: CommandAction): Place {
  return { path, words: [], options: [...options, HELP], operands }
}

/** Files, or one of these words; empty if any text is allowed. */
type Candidates = 'files' | readonly string[]

function candidates(name: string, choices: readonly string[] | undefined): Candidates {
  return choices ?? (name === 'FILE' || name === 'DIRECTORY' ? 'files' : [])
}

function dashed({ name, short }: Option): string[] {
  return short === undefined ? [`--${name}`] : [`-${short}`, `--${name}`]
}

function bashScript(places: readonly Place[]): string {
  const paths = places.slice(1).map(({ path }) => quote(spaced(path)))
  return `_gatehouse() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local path='' words='' files='' index reply
  # Bash takes --option=value apart at the equals sign.
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $previous == '=' ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$path \${COMP_WORDS[index]}" in
      ${paths.join(' | ')}) path+=" \${COMP_WORDS[index]}" ;;
    esac
  done
  case "$path $previous" in
    ${places.flatMap(bashValues).join('\n    ')}
    *)
      case "$path:$word" in
        ${places.flatMap(bashWords).join('\n        ')}
      esac
      ;;
  esac
  COMPREPLY=()
  while IFS= read -r reply; do COMPREPLY+=("$reply"); done < <(
    compgen -W "$words" -- "$word"
    [[ $files ]] && compgen -f -- "$word"
  )
  [[ $files ]] && compopt -o filenames 2> /dev/null
  return 0
}
complete -F _gatehouse gatehouse
`
}

/** Directly after an option that takes a value: only values. */
function bashValues({ path, options }: Place): string[] {
  return options.flatMap((option) => {
    if (option.value === undefined) return []
    const patterns = dashed(option).map((word) => quote(`${spaced(path)} ${word}`))
    return [`${patterns.join(' | ')}) ${bashOffer(candidates(option.value, option.choices))} ;;`]
  })
}

/** Elsewhere: an option after a dash, otherwise a subcommand or an operand. */
function bashWords({ path, words, options, operands }: Place): string[] {
  const place = quote(`${spaced(path)}:`)
  const offered = [
    ...words.map(({ name }) => name),
    ...operands.flatMap(({ name, choices, offers }) => candidates(name, choices ?? offers)),
  ]
  return [
    `${place}-*) ${bashOffer(options.flatMap(dashed))} ;;`,
    `${place}*) ${bashOffer(offered.includes('files') ? 'files' : offered)} ;;`,
  ]
}

function bashOffer(offered: Candidates): string {
  return offered === 'files' ? 'files=yes' : `words=${quote(offered.join(' '))}`
}

function zshScript(places: readonly Place[]): string {
  return `#compdef gatehouse
${places.map(zshFunction).join('\n')}
# In a folder of fpath this file is the body of _gatehouse; read by source it only defines it.
if [[ $funcstack[1] == _gatehouse ]]; then _gatehouse "$@"; else compdef _gatehouse gatehouse; fi
`
}

function zshFunction({ path, words, options, operands }: Place): string {
  const specs = [...options.map(zshOption), ...operands.map(zshOperand)].join(' ')
  if (words.length === 0) return `${zshName(path)}() { _arguments ${specs} }`

  const described = words.map(({ name, summary }) => quote(`${name}:${summary.replaceAll(':', '\\:')}`))
  const next = words.map(({ name }) => `${name}) ${zshName([...path, name])} ;;`)
  return `${zshName(path)}() {
  local curcontext=$curcontext state line
  local -a words_here=(${described.join(' ')})
  _arguments -C ${specs} '1: :->word' '*:: :->rest'
  case $state in
    word) _describe command words_here ;;
    rest) case $line[1] in
      ${next.join('\n      ')}
    esac ;;
  esac
}`
}

function zshOption({ name, short, value, choices, description }: Option): string {
  const text = `[${description.replaceAll(/[[\]:]/g, '\\$&')}]`
  if (value === undefined) {
    return short === undefined ? quote(`--${name}${text}`) : `{-${short},--${name}}${quote(text)}`
  }
  const argument = `:${value}:${zshOffer(candidates(value, choices))}`
  if (short === undefined) return quote(`--${name}=${text}${argument}`)
  return `{-${short}+,--${name}=}${quote(text + argument)}`
}

function zshOperand({ name, choices, offers, optional, many }: Operand, index: number): string {
  const position = many ? '*:' : optional ? `${index + 1}::` : `${index + 1}:`
  return quote(`${position}${name}:${zshOffer(candidates(name, choices ?? offers))}`)
}

function zshOffer(offered: Candidates): string {
  if (offered === 'files') return '_files'
  return offered.length === 0 ? ' ' : `(${offered.join(' ')})`
}

function zshName(path: readonly string[]): string {
  return ['_gatehouse', ...path].join('_')
}

function fishScript(places: readonly Place[]): string {
  return ['-f', ...places.flatMap(fishRules)].map((rule) => `complete -c gatehouse ${rule}\n`).join('')
}

function fishRules({ path, words, options, operands }: Place): string[] {
  const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`)
  const unseen =
    words.length === 0 ? [] : [`not __fish_seen_subcommand_from ${words.map(({ name }) => name).join(' ')}`]
  const condition = `-n ${quote([...seen, ...unseen].join('; and '))}`
  return [
    ...words.map(({ name, summary }) => `${condition} -a ${name} -d ${fishQuote(summary)}`),
    ...options.map((option) => `${condition} ${fishOption(option)}`),
    ...operands.map(
      ({ name, choices, offers }) => `${condition} ${fishOffer(candidates(name, choices ?? offers))}`,
    ),
  ]
}

function fishOption({ name, short, value, choices, description }: Option): string {
  const words = [`-l ${name}`, `-d ${fishQuote(description)}`]
  if (short !== undefined) words.push(`-s ${short}`)
  if (value !== undefined) words.push('-r', fishOffer(candidates(value, choices)))
  return words.join(' ')
}

function fishOffer(offered: Candidates): string {
  return offered === 'files' ? '-F' : `-a ${fishQuote(offered.join(' '))}`
}

function spaced(path: readonly string[]): string {
  return path.map((word) => ` ${word}`).join('')
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function fishQuote(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`
}

const SCRIPTS: ReadonlyMap<string, (places: readonly Place[]) => string> = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
])
