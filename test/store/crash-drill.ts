import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, type Owner } from './databases.ts'
import { entry, newKey } from './samples.ts'

export interface Drilled {
  /** Rounds in which it was killed before it was done. */
  readonly killed: number
  readonly acknowledged: number
  /** Committed, and killed before it could say so. */
  readonly unsaid: number
}

/**
 * Kills a process that writes pairs of rows, at random moments, again and again: afterwards the database
 * opens, has every pair that was acknowledged, and half of none.
 */
export async function drill(kind: DatabaseKind, rounds: number, owner: Owner): Promise<Drilled> {
  const url = await freshUrl(kind, owner)
  await (await Store.open(url)).close()
  let [killed, acknowledged, unsaid] = [0, 0, 0]
  for (let round = 0; round < rounds; round++) {
    const said = await killedWhileWriting(url, round * WRITES)
    killed += Number(said.length < WRITES)
    acknowledged += said.length
    unsaid += await checked(url, round * WRITES, said)
  }
  return { killed, acknowledged, unsaid }
}

/** The numbers that were acknowledged. */
async function killedWhileWriting(url: string, from: number): Promise<readonly number[]> {
  const child = spawn(
    process.execPath,
    [fileURLToPath(import.meta.url), '--write', url, '--from', String(from)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const ended = once(child, 'close')
  const killAfter = Math.floor(Math.random() * WRITES)
  const said: number[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(Number(line))
    if (said.length !== killAfter + 1) continue
    void wait(Math.random() * WRITE_MS_MAX).then(() => child.kill('SIGKILL'))
  }
  await ended
  return said
}

/** How many were written, and not acknowledged. */
async function checked(url: string, from: number, said: readonly number[]): Promise<number> {
  const database = await openDatabase(url, null, migrate)
  try {
    const rows = await database.db.selectFrom('api_keys').select('id').execute()
    const entries = await database.db.selectFrom('audit').select('id').execute()
    const [keys, audit] = [rows, entries].map((all) => new Set(all.map(({ id }) => Number(id.split('_')[1]))))
    assert.deepEqual(keys, audit, 'half a transaction is there')
    const lost = said.filter((number) => !keys!.has(number))
    assert.deepEqual(lost, [], 'acknowledged, and lost')
    const written = [...keys!].filter((number) => number >= from).length
    assert.ok(written - said.length <= 1, 'more is there than was begun')
    if (database.kind === 'sqlite') {
      const { rows: result } = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(
        database.db,
      )
      assert.equal(result[0]?.integrity_check, 'ok')
    }
    return written - said.length
  } finally {
    await database.close()
  }
}

/** What is killed. */
async function write(url: string, from: number): Promise<void> {
  const store = await Store.open(url)
  for (let number = from; number < from + WRITES; number++) {
    await store.transaction(async (queries) => {
      await store.keys.add(newKey(number), queries)
      await store.audit.add(entry(number), queries)
    })
    writeSync(1, `${number}\n`) // at once: what is said is said
  }
  await store.close()
}

const WRITES = 200
/** Two or three times what one takes. */
const WRITE_MS_MAX = 10

if (import.meta.main) {
  const options = { write: { type: 'string' }, from: { type: 'string' }, rounds: { type: 'string' } } as const
  const { values } = parseArgs({ options })
  if (values.write !== undefined) await write(values.write, Number(values.from))
  else
    for (const kind of KINDS) {
      const work: (() => unknown)[] = []
      const rounds = Number(values.rounds ?? 50)
      try {
        const { killed, acknowledged, unsaid } = await drill(kind, rounds, {
          teardown: (each) => work.unshift(each),
        })
        process.stdout.write(
          `${kind}: ${rounds} rounds, ${killed} killed while writing; ${acknowledged} acknowledged, none lost; ` +
            `${unsaid} committed in the moment of the kill; no half transaction\n`,
        )
      } finally {
        for (const each of work) await each()
      }
    }
}
