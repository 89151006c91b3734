import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { sql } from 'kysely'
import type { StartupConfig } from '../../config/config.ts'
import { Fault } from '../../shared/fault.ts'
import { createLogTo } from '../../shared/log.ts'
import { withoutUser } from '../../plane/fleet-proxy.ts'
import { type BusRole, JetStreamConnection, roleOf } from '../../plane/jetstream/jetstream-connection.ts'
import { missingStreams, streamNames } from '../../plane/jetstream/jetstream-streams.ts'
import type { DatabaseKind, Queries } from '../../store/engine/database.ts'
import { lookAtMigrations, type UpgradeObstacle } from '../../store/engine/migrations.ts'
import { openDatabase, sqliteFile } from '../../store/engine/open-database.ts'
import { busSettings } from '../../runtime/startup.ts'
import { storePlace } from '../../runtime/store-place.ts'
import { bad, type CheckResult, good, skipped, warning } from './finding.ts'

/** Opens the database unchanged: missing tables are created at a start, not here. */
export async function lookAtStore(config: StartupConfig): Promise<readonly CheckResult[]> {
  const { storeUrl, storeLogin } = storePlace(config)
  const file = sqliteFile(storeUrl)
  if (file === ':memory:') return [skipped('database', 'is in memory, and gone with the process')]
  const about = `database ${file ?? withoutUser(storeUrl)}`
  if (file !== null && !existsSync(file)) return [good(about, 'is made at the first start')]
  const found: CheckResult[] = []
  try {
    const database = await openDatabase(storeUrl, storeLogin, async (db, kind) => {
      const { missing, obstacle } = await lookAtMigrations(db, kind)
      found.push(ofTables(about, missing, obstacle))
      if (kind === 'postgres') found.push(await ofClock(about, db))
      else found.push(await ofPages(about, db))
    })
    await database.close()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    found.push(bad(about, error.message, FIX_OF_STORE[kindOf(file)]))
  }
  return found
}

function kindOf(file: string | null): DatabaseKind {
  return file === null ? 'postgres' : 'sqlite'
}

function ofTables(about: string, missing: number, obstacle: UpgradeObstacle | null): CheckResult {
  if (obstacle !== null) return bad(about, obstacle.what, obstacle.fix)
  return missing === 0
    ? good(about, 'is there, and its tables are up to date')
    : warning(
        about,
        `its tables are ${missing} steps behind`,
        'a start brings them up to date, or "gatehouse migrate" does',
      )
}

async function ofClock(about: string, db: Queries): Promise<CheckResult> {
  const beforeMs = Date.now()
  const { rows } = await sql<{
    ms: number
  }>`select extract(epoch from clock_timestamp()) * 1000 as ms`.execute(db)
  return clockFinding(about, Number(rows[0]!.ms), beforeMs, Date.now())
}

/** Compares the clocks: `saidMs` is the other machine's time, read between the two moments. */
export function clockFinding(about: string, saidMs: number, beforeMs: number, afterMs: number): CheckResult {
  const offMs = saidMs < beforeMs ? beforeMs - saidMs : Math.max(0, saidMs - afterMs)
  if (offMs <= CLOCKS_APART_MS) return good(about, 'its clock agrees with this one')
  const what = `its clock and this one are ${Math.round(offMs / 1_000)} s apart`
  return warning(about, what, 'synchronize both (NTP): tokens, signatures and statistics depend on them')
}

async function ofPages(about: string, db: Queries): Promise<CheckResult> {
  const { rows } = await sql<{ quick_check: string }>`pragma quick_check(1)`.execute(db)
  const said = rows[0]?.quick_check ?? 'ok'
  return said === 'ok'
    ? good(about, 'is intact')
    : bad(about, `is damaged: ${said}`, 'stop the gateway, and restore a backup: gatehouse restore FILE')
}

/** Checks whether NATS is reachable and has JetStream, and what is stored in it. */
export async function lookAtBus(config: StartupConfig, role: BusRole): Promise<readonly CheckResult[]> {
  const settings = busSettings(config)
  const about = `bus ${settings.urls.map(withoutUser).join(', ')}`
  let why = 'there is no answer'
  const log = createLogTo('warn', { write: (line) => (why = reasonIn(line) ?? why) })
  let connection: JetStreamConnection | null = null
  try {
    connection = new JetStreamConnection(settings, role === 'proxy' ? roleOf(config.proxy.app) : role, log)
    const up = new Promise<boolean>((resolve) => connection!.onUp(() => resolve(true)))
    if (!(await Promise.race([up, wait(CONNECT_MS, false)])))
      return [
        bad(about, `cannot be reached: ${why}`, 'start it, and check bus.url, its user and its certificates'),
      ]
    const missing = await missingStreams(connection.client, streamNames(settings.name))
    if (missing.length === 0) return [good(about, 'is reachable, and all streams exist')]
    const what = `is reachable; missing streams: ${missing.join(', ')}`
    return [
      role === 'manage'
        ? good(about, `${what}, which the first manager creates`)
        : warning(about, what, 'start a manager first'),
    ]
  } catch (error) {
    const what = `is reachable, and refuses: ${(error as Error).message}`
    return [
      bad(
        about,
        what,
        'enable JetStream (nats-server -js) and allow it for this user: see config/guide/fleet.md',
      ),
    ]
  } finally {
    await connection?.close()
  }
}

function reasonIn(line: string): string | null {
  const { error } = JSON.parse(line) as { error?: { message?: string } }
  return error?.message ?? null
}

const FIX_OF_STORE = {
  sqlite:
    'run this as the user that the gateway runs as; a damaged file is replaced by a backup: gatehouse restore FILE',
  postgres:
    'look at store.url, the password, and whether the server runs and lets this machine in (pg_hba.conf)',
}
const CLOCKS_APART_MS = 2_000
const CONNECT_MS = 5_000
