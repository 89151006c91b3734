import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { copied, type Stage, stagesIn } from './dockerfile.ts'

/**
 * Takes the steps of the Dockerfile where there is no engine for it, as root on Debian: each stage in a root of its own,
 * which is this machine's with what the stage writes over it and Node 24 in its place; then starts what came of it as
 * nobody, with nothing to write to but its volume, and asks it how it is. `npm run image:prove`
 */
async function main(): Promise<void> {
  assert.equal(process.getuid?.(), 0, 'it needs root, for mounts')
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-image-'))
  const roots = new Map<string, Root>()
  try {
    const stages = stagesIn('Dockerfile')
    for (const [number, stage] of stages.entries()) {
      const root = new Root(join(folder, `${number}`))
      if (stage.name !== null) roots.set(stage.name, root)
      roots.set('', root)
      run(stage, root, roots)
    }
    await start(roots.get('')!, stages.at(-1)!)
  } finally {
    for (const root of new Set(roots.values())) root.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function run({ base, steps }: Stage, root: Root, roots: ReadonlyMap<string, Root>): void {
  say(`FROM ${base}`)
  let folder = '/'
  for (const { word, rest } of steps) {
    if (word === 'WORKDIR') {
      folder = rest
      mkdirSync(root.at(folder), { recursive: true })
    } else if (word === 'COPY') {
      say(`COPY ${rest}`)
      const { from, sources, target } = copied(rest)
      for (const source of sources) {
        const path = from === null ? resolve(source) : roots.get(from)!.at(source)
        const isFolder = statSync(path).isDirectory()
        const name = isFolder ? '' : (path.split('/').at(-1) ?? '')
        cpSync(path, join(root.at(resolve(folder, target)), target.endsWith('/') ? name : ''), {
          recursive: true,
        })
      }
    } else if (word === 'RUN') {
      say(`RUN ${rest}`)
      root.run(rest, folder)
    }
  }
}

/** The variables of an image. */
function setBy(steps: Stage['steps']): Record<string, string> {
  const lines = steps.filter(({ word }) => word === 'ENV').map(({ rest }) => rest)
  const pairs = [...lines.join(' ').matchAll(/(\S+?)=(?:"([^"]*)"|(\S*))/g)]
  return Object.fromEntries(pairs.map(([, name, quoted, plain]) => [name!, quoted ?? plain!]))
}

async function start(root: Root, { steps }: Stage): Promise<void> {
  const last = (word: string) => steps.findLast((step) => step.word === word)!.rest
  const [uid, gid] = last('USER').split(':')
  const command: string[] = [...JSON.parse(last('ENTRYPOINT')), ...JSON.parse(last('CMD'))]
  assert.ok(!existsSync(root.at('/usr/local/bin/npm')), 'npm is gone')
  const sbom = JSON.parse(readFileSync(root.at('/app/sbom.cdx.json'), 'utf8'))
  assert.ok(sbom.bomFormat === 'CycloneDX' && sbom.components.length > 50)
  assert.ok(!readdirSync(root.at('/app/node_modules')).includes('typescript'))
  const script = [
    `mount -o remount,ro ${root.path}`,
    `mount -t tmpfs -o mode=700,uid=${uid},gid=${gid} tmpfs ${root.at(last('VOLUME'))}`,
    `exec chroot --userspec=${uid}:${gid} ${root.path} sh -c 'cd ${last('WORKDIR')} && ! touch /app/x 2> /dev/null && exec ${command.join(' ')}'`,
  ].join(' && ')
  const child = spawn('unshare', ['--mount', 'sh', '-c', script], {
    env: {
      ...{
        PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        ...setBy(steps),
        GATEHOUSE_PROXY_UPSTREAM: 'http://127.0.0.1:9',
      },
      ...{ GATEHOUSE_PROXY_LISTEN: '127.0.0.1:19443', GATEHOUSE_MANAGE_LISTEN: '127.0.0.1:19080' },
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  try {
    const ended = once(child, 'exit').then(([code]) => assert.fail(`it ended (${code})`))
    const answer = await Promise.race([ended, answered('http://127.0.0.1:19080/health/live')])
    say(`started as ${uid}, with a root that cannot be written to: ${answer}`)
  } finally {
    child.kill('SIGTERM')
    await Promise.race([once(child, 'exit'), wait(20_000)])
    child.kill('SIGKILL')
  }
}

async function answered(url: string): Promise<number> {
  const deadlineMs = performance.now() + 60_000
  while (performance.now() < deadlineMs) {
    const status = await fetch(url).then(
      (response) => response.status,
      () => null,
    )
    if (status === 200) return status
    await wait(200)
  }
  return assert.fail('it does not answer')
}

/** This machine's root, with what is written going elsewhere. */
class Root {
  readonly path: string

  constructor(folder: string) {
    this.path = join(folder, 'root')
    for (const name of ['root', 'upper', 'work']) mkdirSync(join(folder, name), { recursive: true })
    const layers = `lowerdir=/,upperdir=${join(folder, 'upper')},workdir=${join(folder, 'work')}`
    // What is written is on another file system than what is read, where / is an overlay itself.
    execFileSync('mount', ['-t', 'overlay', 'overlay', '-o', layers, this.path])
    for (const name of ['proc', 'dev', 'sys'])
      execFileSync('mount', ['--rbind', `/${name}`, join(this.path, name)])
    // The base image has Node 24 there; npm is this machine's.
    rmSync(this.at('/usr/local/bin/node'), { force: true })
    cpSync(process.execPath, this.at('/usr/local/bin/node'))
    rmSync(this.at('/app'), { recursive: true, force: true })
  }

  at(path: string): string {
    return join(this.path, path)
  }

  run(line: string, folder: string): void {
    execFileSync('chroot', [this.path, 'sh', '-ec', `cd ${folder} && ${line}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }

  close(): void {
    execFileSync('umount', ['--recursive', '--lazy', this.path], { stdio: 'ignore' })
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

await main()
