import { erase, type Erased } from '../manage/privacy/erase.ts'
import type { ErasureReport } from '../manage/privacy/erasure-report.ts'
import { COMMAND_LINE } from '../manage/http/audit.ts'
import { AddressHasher } from '../plane/privacy/address-form.ts'
import { configGiven, STORE_OPTIONS, withStore } from '../runtime/store-given.ts'
import { Fault } from '../shared/fault.ts'
import { USAGE } from '../terminal/arguments.ts'
import type { Arguments, CommandAction, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { JSON_OPTION, printJson } from '../terminal/json-option.ts'
import { type Column, renderTable } from '../terminal/table.ts'

export const erasePerson: CommandAction = {
  name: 'erase',
  summary: "Erase one person's data in every store",
  description: [
    'An address is found in every form of privacy.addresses, with the keys of privacy.keys. Requests that were stored with a network instead of an address are deleted too: those of neighbours cannot be told apart.',
    'A user is deleted and signed out everywhere. The audit log keeps what they did, under the id of the deleted account.',
    'It may run while managers run, several times, and again after an interruption. It does not reach the files of sinks, what webhooks and syslog servers received, logs, traces, backups, and requests that proxies have not sent yet: see "gatehouse help privacy".',
  ],
  operands: [],
  options: [
    {
      name: 'address',
      value: 'ADDRESS',
      description: 'An address, the /64 of an IPv6 address, or a stored hash:…',
    },
    {
      name: 'user',
      value: 'USER',
      description: 'An email address, or an id as "users list" shows it: usr_…',
    },
    { name: 'dry-run', description: 'Count what would be erased, and change nothing' },
    JSON_OPTION,
    ...STORE_OPTIONS,
  ],
  examples: [
    { command: 'erase --address 203.0.113.7 --dry-run', description: 'What is stored of this client' },
    { command: 'erase --user anna@example.com', description: 'A user and their sessions' },
  ],
  run: runErase,
}

async function runErase(given: Arguments, io: Io): Promise<ExitCode> {
  const erased = erasedIn(given)
  const { privacy } = configGiven(given, io)
  const addressHashers = privacy.keys.map((key) => new AddressHasher(key.reveal()))
  const options = { isDry: given.flag('dry-run'), nowMs: Date.now() }
  const report = await withStore(given, io, false, (store) =>
    erase({ store, addressHashers }, erased, COMMAND_LINE, options),
  )
  if (given.flag('json')) printJson(io, { dry_run: report.isDry, tables: report.tables })
  else print(report, io)
  return 0
}

function erasedIn(given: Arguments): Erased {
  const [address, user] = [given.value('address'), given.value('user')]
  if (address !== null && user === null) return { address }
  if (user !== null && address === null) return { user }
  throw new Fault(USAGE, 'give either --address or --user')
}

function print({ isDry, tables }: ErasureReport, io: Io): void {
  const columns: readonly Column[] = [
    { title: 'TABLE' },
    { title: 'ROWS', align: 'right' },
    { title: isDry ? 'WOULD BE' : 'DONE' },
  ]
  const rows = tables.map(({ table, rows: count, done }) => [table, `${count}`, count === 0 ? '' : done])
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
}
