import { type RekeyReport, rekey } from '../manage/rekey.ts'
import type { CommandAction, Arguments, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { JSON_OPTION, printJson } from '../terminal/json-option.ts'
import { Progress } from '../terminal/progress.ts'
import { STORE_OPTIONS, sealerGiven, withStore } from '../runtime/store-given.ts'
import { type Column, renderTable } from '../terminal/table.ts'

export const rekeySecrets: CommandAction = {
  name: 'rekey',
  summary: 'Encrypt the secrets in the database again with the first encryption key',
  description: [
    'The setting store.encryption_keys lists the keys: the first encrypts, all decrypt. To replace a key: append the new one for every manager, then move it to the front, run this command, and remove the old one.',
    'Without this setting, the keys are the lines of the file store.key in data.dir; --new-key puts a new key in front.',
    'It may run while managers run, and continues after an interruption. A secret that cannot be decrypted stays unchanged and is named, and the exit code is 1.',
  ],
  operands: [],
  options: [
    { name: 'dry-run', description: 'Count the secrets that would be encrypted again, and change nothing' },
    { name: 'new-key', description: 'First add a new key to the file store.key' },
    JSON_OPTION,
    ...STORE_OPTIONS,
  ],
  examples: [
    { command: 'rekey --config fleet.yaml', description: 'After you moved a new key to the front' },
    { command: 'rekey --new-key', description: 'With a new key in store.key' },
  ],
  run: runRekey,
}

async function runRekey(given: Arguments, io: Io): Promise<ExitCode> {
  const sealer = sealerGiven(given, io)
  const isDry = given.flag('dry-run')
  const report = await withStore(given, io, false, async (store) => {
    if (given.flag('new-key') && !isDry) await sealer.addKey()
    const bar = new Progress(io)
    try {
      return await rekey(store, sealer, {
        isDry,
        progress: (done, all) => bar.draw(done, all, `${all} secrets`),
      })
    } finally {
      bar.clear()
    }
  })
  if (given.flag('json')) printJson(io, { ...report, key_id: report.keyId, keyId: undefined, dry_run: isDry })
  else print(report, isDry, io)
  return report.problems.length > 0 ? 1 : 0
}

function print({ keyId, tables, problems }: RekeyReport, isDry: boolean, io: Io): void {
  const rows = tables.map((each) => [each.table, `${each.total}`, `${each.rekeyed}`, `${each.failed}`])
  const columns: readonly Column[] = [
    { title: 'TABLE' },
    { title: 'SECRETS', align: 'right' },
    { title: isDry ? 'TO ENCRYPT' : 'ENCRYPTED', align: 'right' },
    { title: 'FAILED', align: 'right' },
  ]
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
  const sum = (of: 'rekeyed' | 'failed') => tables.reduce((all, each) => all + each[of], 0)
  const failed = sum('failed')
  for (const problem of problems) io.stderr.write(`${problem}\n`)
  if (failed > problems.length) io.stderr.write(`… and ${failed - problems.length} more\n`)
  io.stdout.write(`\n${closing(keyId, isDry, sum('rekeyed'), failed)}\n`)
}

function closing(keyId: string, isDry: boolean, rekeyed: number, failed: number): string {
  if (isDry) return `${secrets(rekeyed)} would be encrypted with the key ${keyId}.`
  const done = `${secrets(rekeyed)} encrypted with the key ${keyId}.`
  if (failed > 0) return `${done} ${secrets(failed)} cannot be decrypted, and stayed as they were: see above.`
  return rekeyed > 0
    ? `${done} Run this again: when it finds none any more, the other keys can go, unless backups need them.`
    : `All secrets are encrypted with the key ${keyId}. The other keys can go, unless backups need them.`
}

function secrets(count: number): string {
  return count === 1 ? 'One secret' : `${count} secrets`
}
