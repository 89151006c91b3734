import { partsContract } from '../contract/parts.ts'
import { KINDS } from './databases.ts'

for (const kind of KINDS) partsContract(kind)
