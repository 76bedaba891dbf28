/** Words of logging in and of choosing a password. */
export const sessionWords = {
  welcome: ["Log in with your platform account.", "请使用平台账号登录。"],
  name: ["Name", "用户名"],
  nameMissing: ["Write your name.", "请输入用户名。"],
  password: ["Password", "密码"],
  passwordMissing: ["Write the password.", "请输入密码。"],
  logIn: ["Log in", "登录"],
  forgotten: [
    "No account, or the password is lost? An admin of your team gives you a new one.",
    "没有账号或忘记密码？请联系团队管理员重新设置。",
  ],
  chooseTitle: ["Choose your own password", "请设置自己的密码"],
  chooseWhy: [
    "Yours was given by somebody else, so it is good for this one step only.",
    "当前密码由他人设置，只能用于这一步。",
  ],
  oneTime: ["The password you were given", "你收到的密码"],
  newPassword: ["New password", "新密码"],
  newAgain: ["New password, once more", "再次输入新密码"],
  rule: ["At least 10 characters.", "至少 10 个字符。"],
  tooShort: ["Too short.", "太短。"],
  oldWrong: ["This is not the password you were given.", "与你收到的密码不符。"],
  different: ["The two are different.", "两次输入不一致。"],
  choose: ["Use this password", "使用此密码"],
} as const;
