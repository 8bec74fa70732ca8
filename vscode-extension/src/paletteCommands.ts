import { ServerCommand } from './protocol';

/** The extension's own commands. Their ids differ from the server's, which vscode-languageclient registers itself. */
export const PaletteCommand = {
  checkHere: 'cutesmith.checkHere',
  reportHere: 'cutesmith.reportHere',
  exportReport: 'cutesmith.exportReport',
  restartServer: 'cutesmith.restartServer',
  showLog: 'cutesmith.showLog',
  checkSetup: 'cutesmith.checkSetup',
  install: 'cutesmith.install',
  openExample: 'cutesmith.openExample',
  setKey: 'cutesmith.setKey',
  forgetKey: 'cutesmith.forgetKey',
  toggleModel: 'cutesmith.toggleModel',
  copyDiagnostics: 'cutesmith.copyDiagnostics',
} as const;

/** Commands of the palette that run a server command on the class at the cursor. */
export const CLASS_COMMANDS: Readonly<Record<string, ServerCommand>> = {
  'cutesmith.generateHere': ServerCommand.generate,
  'cutesmith.acceptHere': ServerCommand.accept,
  'cutesmith.rejectHere': ServerCommand.reject,
  'cutesmith.removeHere': ServerCommand.remove,
  'cutesmith.cancelHere': ServerCommand.cancel,
  'cutesmith.reviewHere': ServerCommand.review,
  'cutesmith.pauseHere': ServerCommand.pause,
  'cutesmith.resumeHere': ServerCommand.resume,
  'cutesmith.revalidateHere': ServerCommand.revalidate,
  'cutesmith.acceptFileHere': ServerCommand.acceptFile,
  'cutesmith.improveHere': ServerCommand.improve,
  'cutesmith.watchHere': ServerCommand.watch,
  'cutesmith.unwatchHere': ServerCommand.unwatch,
};

/** The Kernels view's own commands. */
export const ViewCommand = {
  open: 'cutesmith.view.open',
  report: 'cutesmith.view.report',
  dismiss: 'cutesmith.view.dismiss',
  filter: 'cutesmith.view.filter',
  clearFilter: 'cutesmith.view.clearFilter',
} as const;

/** Commands of the Kernels view that run a server command on the row's class. */
export const ROW_COMMANDS: Readonly<Record<string, ServerCommand>> = {
  'cutesmith.view.generate': ServerCommand.generate,
  'cutesmith.view.retry': ServerCommand.generate,
  'cutesmith.view.improve': ServerCommand.improve,
  'cutesmith.view.review': ServerCommand.review,
  'cutesmith.view.accept': ServerCommand.accept,
  'cutesmith.view.reject': ServerCommand.reject,
  'cutesmith.view.remove': ServerCommand.remove,
  'cutesmith.view.cancel': ServerCommand.cancel,
  'cutesmith.view.pause': ServerCommand.pause,
  'cutesmith.view.resume': ServerCommand.resume,
  'cutesmith.view.revalidate': ServerCommand.revalidate,
  'cutesmith.view.approve': ServerCommand.approve,
  'cutesmith.view.showJobLog': ServerCommand.showJobLog,
};

/** Commands in the title bar of a review, which run a server command on the class that it is of. */
export const REVIEW_COMMANDS: Readonly<Record<string, ServerCommand>> = {
  'cutesmith.reviewed.accept': ServerCommand.accept,
  'cutesmith.reviewed.reject': ServerCommand.reject,
};
