import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'

/** What stands between two fences. */
export interface Example {
  /** The heading it stands under. */
  readonly section: string
  /** `sh`, `yaml`, …; empty where none is said. */
  readonly language: string
  readonly text: string
}

/** Every one that the README has, in its order. */
export function examples(): readonly Example[] {
  const found: Example[] = []
  let section = ''
  let open: { language: string; lines: string[] } | null = null
  for (const line of readFileSync('README.md', 'utf8').split('\n')) {
    const [, language] = /^```(.*)$/.exec(line) ?? []
    if (open === null && language !== undefined) open = { language, lines: [] }
    else if (open !== null && language !== undefined) {
      found.push({ section, language: open.language, text: `${open.lines.join('\n')}\n` })
      open = null
    } else if (open !== null) open.lines.push(line)
    else section = /^##+ (.*)$/.exec(line)?.[1] ?? section
  }
  assert.equal(open, null, 'README.md ends within an example')
  return found
}

/** The one that has this in it. */
export function exampleWith(mark: string): string {
  const all = examples().filter(({ text }) => text.includes(mark))
  assert.equal(all.length, 1, `README.md has ${all.length} examples with ${mark}`)
  return all[0]!.text
}

/** For a program that takes no 0. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
