import type { Group } from '../../terminal/command.ts'
import { exportSnapshot } from './snapshot-export.ts'
import { showSnapshot } from './snapshot-show.ts'

export const snapshot: Group = {
  name: 'snapshot',
  summary: 'Write the policy and the signatures of a fleet to a file, and show such a file',
  description: [
    'A Snapshot contains the policy and the signatures that a proxy needs to decide. A proxy that starts with such a file ' +
      '(setting bus.bootstrap_file) enforces the policy of its fleet even if it cannot reach NATS at its first start.',
  ],
  subcommands: [exportSnapshot, showSnapshot],
}
