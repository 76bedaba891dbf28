/** Words of the first steps. */
export const tourWords = {
  title: ["Your first job", "运行第一个任务"],
  why: [
    "Work is put into a queue, started where there is room, and its output is kept. See it once: a small job that counts to five and needs no card.",
    "任务会进入队列，有空位时启动，输出会被保存。先看一遍：一个不需要加速卡、从一数到五的小任务。",
  ],
  run: ["Run an example", "运行示例"],
  noImage: ["This platform runs work in images, and there is none on its machine yet. An admin fetches one: yard image pull debian:12", "此平台在镜像中运行任务，而机器上还没有镜像。请管理员拉取：yard image pull debian:12"],
  dismiss: ["Not now", "暂不"],
  close: ["Close", "关闭"],
  running: ["The example is on its way. Its output appears here.", "示例正在进行，输出会显示在这里。"],
  done: ["That was a whole job: queued, started, finished, and its output kept.", "这就是一个完整的任务：排队、启动、完成，输出已保存。"],
  failed: ["The example did not finish well. Its page says why.", "示例没有顺利完成，任务页面会说明原因。"],
  output: ["Output of the example", "示例的输出"],
  see: ["See all about it", "查看任务详情"],
  next: ["What next?", "接下来？"],
  ownJob: ["Submit a job of your own", "提交自己的任务"],
  env: ["Make a dev environment", "新建开发环境"],
} as const;
