import { didYouMean } from '../shared/did-you-mean.ts'
import { Fault } from '../shared/fault.ts'
import { Guide } from '../shared/guide.ts'
import { version } from '../shared/package-files.ts'
import { HELP, parseArguments, unknownOption, USAGE, VERSION } from '../terminal/arguments.ts'
import type { CommandAction, Command, CommandEntry, ExitCode, Option } from '../terminal/command.ts'
import { commandHelp, programHelp } from '../terminal/help.ts'
import type { Io } from '../terminal/io.ts'

/** Runs the arguments after `gatehouse`. Never throws: each failure becomes a line and an exit code. */
export function runCli(entries: readonly CommandEntry[], argv: readonly string[], io: Io): Promise<ExitCode> {
  return reported(PROGRAM, io, async () => {
    const [first, ...rest] = argv
    if (first === undefined) return show(programHelp(entries, new Guide(), io), io.stderr, 2)
    if (asksFor(HELP, first)) return show(programHelp(entries, new Guide(), io), io.stdout)
    if (asksFor(VERSION, first)) return show(`${PROGRAM} ${version()}\n`, io.stdout)

    const entry = find(entries, first, 'command', [HELP, VERSION])
    const path = `${PROGRAM} ${entry.name}`
    return reported(path, io, async () => runCommand(path, await entry.load(), rest, io))
  })
}

async function runCommand(
  path: string,
  command: Command,
  argv: readonly string[],
  io: Io,
): Promise<ExitCode> {
  if (!('subcommands' in command)) return runAction(path, command, argv, io)

  const [first, ...rest] = argv
  if (first !== undefined && asksFor(HELP, first)) return show(commandHelp(path, command, io), io.stdout)
  if (first === undefined)
    throw new Fault(USAGE, `needs a subcommand: ${namesOf(command.subcommands).join(', ')}`)
  const subcommand = find(command.subcommands, first, 'subcommand', [HELP])
  const subpath = `${path} ${subcommand.name}`
  return reported(subpath, io, () => runAction(subpath, subcommand, rest, io))
}

async function runAction(
  path: string,
  action: CommandAction,
  argv: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const given = parseArguments(action, argv)
  return given === 'help' ? show(commandHelp(path, action, io), io.stdout) : action.run(given, io)
}

/** Prints failures as `path: …`, on one line unless it is a bug in Gatehouse. */
async function reported(path: string, io: Io, run: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Fault)) {
      const stack = error instanceof Error ? error.stack : String(error)
      return show(`${path}: this is a bug in Gatehouse, please report it:\n${stack}\n`, io.stderr, 70)
    }
    if (error.code !== USAGE) return show(`${path}: ${error.message}\n`, io.stderr, 1)
    return show(`${path}: ${error.message}; see "${path} --help"\n`, io.stderr, 2)
  }
}

function find<Named extends { readonly name: string }>(
  all: readonly Named[],
  name: string,
  kind: string,
  options: readonly Option[],
): Named {
  const found = all.find((candidate) => candidate.name === name)
  if (found !== undefined) return found
  if (name.startsWith('-')) throw unknownOption(name, options)
  throw new Fault(USAGE, `unknown ${kind} "${name}"${didYouMean(name, namesOf(all))}`)
}

function namesOf(all: readonly { readonly name: string }[]): string[] {
  return all.map((named) => named.name)
}

function asksFor({ name, short }: Option, word: string): boolean {
  return word === `--${name}` || word === `-${short}`
}

function show(text: string, stream: Io['stdout'], exitCode: ExitCode = 0): ExitCode {
  stream.write(text)
  return exitCode
}

const PROGRAM = 'gatehouse'
