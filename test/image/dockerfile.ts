import { readFileSync } from 'node:fs'

export interface Stage {
  readonly base: string
  readonly name: string | null
  readonly steps: readonly Step[]
}

/** One line, with what it goes on with. */
export interface Step {
  readonly word: string
  readonly rest: string
}

/** What this project's own Dockerfile is written in: no ADD, no ARG, no heredocs. */
export function stagesIn(file: string): readonly Stage[] {
  const text = readFileSync(file, 'utf8')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
  const stages: { base: string; name: string | null; steps: Step[] }[] = []
  for (const line of text.split('\n').filter((each) => each.trim() !== '')) {
    const [, word, rest] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
    if (word === undefined || rest === undefined) throw new Error(`cannot be read: ${line}`)
    if (word === 'FROM') {
      const [, base, name] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(rest)!
      stages.push({ base: base!, name: name ?? null, steps: [] })
    } else stages.at(-1)!.steps.push({ word, rest })
  }
  return stages
}

/** Of a COPY: from which stage, or `null` from the folder of the Dockerfile. */
export function copied(rest: string): {
  readonly from: string | null
  readonly sources: readonly string[]
  readonly target: string
} {
  const words = rest.split(/\s+/)
  const from = words[0]!.startsWith('--from=') ? words.shift()!.slice('--from='.length) : null
  return { from, sources: words.slice(0, -1), target: words.at(-1)! }
}
