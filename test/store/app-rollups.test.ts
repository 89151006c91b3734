import { appRollupsContract } from '../contract/app-rollups.ts'
import { KINDS } from './databases.ts'

for (const kind of KINDS) appRollupsContract(kind)
