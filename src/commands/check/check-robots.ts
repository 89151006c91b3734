import type { Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { printJson } from '../../terminal/json-option.ts'
import { visible } from '../../terminal/table.ts'
import { compared, type Contradiction } from '../../terms/contradictions.ts'
import { Effort } from '../../terms/effort.ts'
import { givenTerms } from '../publish/publish.ts'
import { robotsFile } from '../publish/robots-file.ts'

/** `gatehouse check --robots`: where the robots.txt of the app and the policy contradict each other. */
export async function checkRobots(file: string, given: Arguments, io: Io): Promise<ExitCode> {
  const robots = await robotsFile(file)
  const terms = await givenTerms(given, io)
  const { contradictions: found } = compared(terms, robots, new Effort(Number.POSITIVE_INFINITY))
  if (given.flag('json')) {
    const json = found.map(({ kind, pattern, line, tokens }) => {
      return {
        kind: kind.replace('-', '_'),
        path: pattern,
        line: line?.lineNumber ?? null,
        rule: line?.line ?? null,
        user_agents: tokens,
      }
    })
    printJson(io, { contradictions: json, unpublished_rules: terms.unlisted.map(({ rule }) => rule) })
  } else {
    const crawlers = terms.agents.length + 1
    for (const each of found) io.stdout.write(`${visible(`${file}:${sentence(each, crawlers)}`)}\n`)
    if (found.length === 0) io.stdout.write('robots.txt and the policy say the same to every crawler.\n')
  }
  return found.length === 0 ? 0 : 1
}

function sentence({ kind, pattern, line, tokens }: Contradiction, crawlers: number): string {
  const place = line === null ? ' nothing forbids it' : `${line.lineNumber}: "${line.line}"`
  const who = tokens.length === crawlers ? 'every crawler' : named(tokens)
  return kind === 'refused'
    ? `${place}, but the policy refuses ${pattern} to ${who}`
    : `${place}, but the policy lets ${who} have ${pattern}`
}

function named(tokens: readonly string[]): string {
  const shown = tokens.map((token) => (token === '*' ? 'crawlers without a signature' : token))
  const more = shown.length - TOKENS_SHOWN_MAX
  if (more <= 1) return shown.join(', ')
  return `${shown.slice(0, TOKENS_SHOWN_MAX).join(', ')} and ${more} more (--json lists them)`
}

const TOKENS_SHOWN_MAX = 5
