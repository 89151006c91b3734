import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A folder of secrets as Kubernetes mounts it: links to a folder that is swapped for another one in one step. */
export class MountedSecret {
  readonly folder: string
  #version = 0

  constructor(folder: string, content: Readonly<Record<string, string>>) {
    this.folder = folder
    mkdirSync(folder, { recursive: true })
    this.swap(content)
    for (const name of Object.keys(content)) symlinkSync(join('..data', name), this.file(name))
  }

  file(name: string): string {
    return join(this.folder, name)
  }

  swap(content: Readonly<Record<string, string>>): void {
    const before = `..${this.#version}`
    const next = `..${++this.#version}`
    mkdirSync(join(this.folder, next))
    for (const [name, text] of Object.entries(content))
      writeFileSync(join(this.folder, next, name), text, { mode: 0o600 })
    symlinkSync(next, join(this.folder, '..data_tmp'))
    renameSync(join(this.folder, '..data_tmp'), join(this.folder, '..data'))
    rmSync(join(this.folder, before), { recursive: true, force: true })
  }
}
