import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, renameSync } from 'node:fs'

/** A long list of signatures. Hashes as they are: nothing two have in common but by chance. */
export async function writeLongList(path: string, count: number): Promise<void> {
  const unfinished = `${path}.tmp`
  const stream = createWriteStream(unfinished)
  for (let i = 0; i < SOFTWARE; i++)
    stream.write(`${JSON.stringify({ id: `s${i}`, name: `S ${i}`, kind: 'tool' })}\n`)
  for (let i = 0; i < count; i++) {
    const hashes = randomBytes(12).toString('hex')
    const a = `t13d${10 + (i % 60)}${10 + ((i * 7) % 80)}h2`
    const ja4 = `${a}_${hashes.slice(0, 12)}_${hashes.slice(12)}`
    const line = {
      software: `s${i % SOFTWARE}`,
      ja4,
      source: 'generated',
      date: '2026-11-21',
      observations: i,
    }
    if (!stream.write(`${JSON.stringify(line)}\n`)) await once(stream, 'drain')
  }
  stream.end()
  await once(stream, 'finish')
  renameSync(unfinished, path)
}

const SOFTWARE = 1000
