import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { test } from 'tap'
import { LeaderLock } from '../../src/store/engine/leader-lock.ts'
import { Store } from '../../src/store/store.ts'
import { makeCa } from '../../src/proxy/tls/certificate-maker.ts'
import { certificateFiles } from '../inject/certificates.ts'
import { folderFor, startPostgres } from './engines.ts'

test('PostgreSQL over TLS: it has to be the one that the CA has signed, by the name that was asked for', async (t) => {
  const folder = folderFor(t, 'postgres')
  const files = await certificateFiles(folder, Date.now(), ['localhost'])
  const tls = ['ssl=on', `ssl_cert_file=${files.cert}`, `ssl_key_file=${files.key}`]
  const postgres = await startPostgres(t, folder, tls)
  const foreign = join(folderFor(t, 'ca'), 'ca.pem')
  writeFileSync(foreign, (await makeCa('Another CA', ['localhost'], Date.now(), 10)).certificate)
  const url = (query: string) => {
    const url = new URL(postgres.url)
    url.hostname = 'localhost'
    url.search = query
    return url.href
  }
  const verified = url(`sslmode=verify-full&sslrootcert=${files.ca}`)
  const store = await Store.open(verified)
  t.teardown(() => store.close())
  assert.deepEqual(await store.settings.all(), [])
  const lock = new LeaderLock(verified, null)
  t.teardown(() => lock.release())
  assert.ok((await lock.take()) && (await lock.isHeld()))
  assert.deepEqual(await sessions(postgres.url), ['gatehouse leader true', 'gatehouse true'])

  const unknown = /cannot be reached .*(?:certificate|self-signed)/
  // Those that everybody trusts know nothing of it.
  for (const query of [`sslmode=verify-full&sslrootcert=${foreign}`, 'sslmode=verify-full'])
    await assert.rejects(Store.open(url(query)), { code: 'STORE_UNAVAILABLE', message: unknown }, query)
})

test('PostgreSQL over TLS: a certificate for another name is refused', async (t) => {
  const folder = folderFor(t, 'postgres')
  const files = await certificateFiles(folder, Date.now(), ['db.example'])
  const tls = ['ssl=on', `ssl_cert_file=${files.cert}`, `ssl_key_file=${files.key}`]
  const postgres = await startPostgres(t, folder, tls)
  const at = (host: string) => {
    const url = new URL(postgres.url)
    url.hostname = host
    url.search = `sslmode=verify-full&sslrootcert=${files.ca}`
    return url.href
  }
  await assert.rejects(Store.open(at('localhost')), { code: 'STORE_UNAVAILABLE', message: /altnames/ })
  // Its address stands in it.
  await (await Store.open(at('127.0.0.1'))).close()
})

/** Ours, as the server sees them: whether each is by TLS. */
async function sessions(url: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query(
      "select distinct application_name || ' ' || ssl as said from pg_stat_activity join pg_stat_ssl using (pid) where application_name like 'gatehouse%' order by 1",
    )
    return rows.map(({ said }) => said)
  } finally {
    await client.end()
  }
}
